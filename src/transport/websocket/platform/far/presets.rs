//! Far sides of the presets: what a platform's server answers, as data, so that an agent for tests can stand in for it.
//!
//! Each row belongs to the preset of the same name and has its sources. Members that no source confirms are in
//! `assumed`.

/// Messages of a server, by the name of its protocol.
pub(super) struct FarPreset {
    pub(super) name: &'static str,
    /// Settings in JSON, as [`FarSide`](super::side::FarSide) reads them.
    pub(super) settings: &'static str,
    /// Members that no documentation confirms.
    pub(super) assumed: &'static [&'static str],
}

pub(super) static FAR_PRESETS: [FarPreset; 8] = [
    FarPreset {
        name: "openai_realtime",
        settings: r#"{
            "open": { "type": "session.created", "event_id": "{{message.id}}", "session": {
                "type": "realtime", "id": "{{session.id}}", "object": "realtime.session" } },
            "accept": "session.update",
            "accepted": { "type": "session.updated", "event_id": "{{message.id}}", "session": "{{message/session}}" },
            "format_in": { "format": "/session/audio/input/format" },
            "format_out": { "format": "/session/audio/output/format" },
            "audio_in": { "type": "input_audio_buffer.append", "pointer": "/audio" },
            "audio_out": { "type": "response.output_audio.delta", "event_id": "{{message.id}}",
                "response_id": "{{response.id}}", "item_id": "{{item.id}}", "output_index": 0, "content_index": 0,
                "delta": "{{audio}}" },
            "speech": { "type": "response.created", "event_id": "{{message.id}}", "response": {
                "id": "{{response.id}}", "object": "realtime.response", "status": "in_progress", "output": [] } },
            "words": { "type": "response.output_audio_transcript.done", "event_id": "{{message.id}}",
                "response_id": "{{response.id}}", "item_id": "{{item.id}}", "output_index": 0, "content_index": 0,
                "transcript": "{{text}}" },
            "done": [{ "type": "response.output_audio.done", "event_id": "{{message.id}}",
                "response_id": "{{response.id}}", "item_id": "{{item.id}}", "output_index": 0, "content_index": 0 },
                { "type": "response.done", "event_id": "{{message.id}}", "response": {
                "id": "{{response.id}}", "object": "realtime.response", "status": "completed", "output": [] } }],
            "cut": [{ "type": "input_audio_buffer.speech_started", "event_id": "{{message.id}}",
                "item_id": "{{item.id}}_caller", "audio_start_ms": "{{heard.ms}}" },
                { "type": "response.done", "event_id": "{{message.id}}", "response": {
                "id": "{{response.id}}", "object": "realtime.response", "status": "cancelled",
                "status_details": { "type": "cancelled", "reason": "turn_detected" }, "output": [] } }],
            "tool": [{ "type": "response.function_call_arguments.done", "event_id": "{{message.id}}",
                "response_id": "{{response.id}}_tool", "item_id": "{{tool.id}}_item", "output_index": 0,
                "call_id": "{{tool.id}}", "name": "{{tool.name}}", "arguments": "{{tool.arguments_text}}" },
                { "type": "response.done", "event_id": "{{message.id}}", "response": {
                "id": "{{response.id}}_tool", "object": "realtime.response", "status": "completed", "output": [] } }],
            "tool_answer": { "type": "conversation.item.create & /item/type=function_call_output",
                "id": "/item/call_id", "result": "/item/output" },
            "known": "response.create | response.cancel | conversation.item.truncate | conversation.item.create"
        }"#,
        assumed: &[],
    },
    FarPreset {
        name: "gemini_live",
        settings: r#"{
            "in_binary": true,
            "accept": "/setup", "accepted": { "setupComplete": {} },
            "audio_in": { "type": "/realtimeInput/audio", "pointer": "/realtimeInput/audio/data" },
            "audio_out": { "serverContent": { "modelTurn": { "parts": [{ "inlineData": {
                "mimeType": "audio/pcm;rate={{audio.rate}}", "data": "{{audio}}" } }] } } },
            "words": { "serverContent": { "outputTranscription": { "text": "{{text}}" } } },
            "done": [{ "serverContent": { "generationComplete": true } },
                { "serverContent": { "turnComplete": true } }],
            "cut": [{ "serverContent": { "interrupted": true } }, { "serverContent": { "turnComplete": true } }],
            "tool": { "toolCall": { "functionCalls": [{ "id": "{{tool.id}}", "name": "{{tool.name}}",
                "args": "{{tool.arguments}}" }] } },
            "tool_answer": { "type": "/toolResponse", "id": "/toolResponse/functionResponses/0/id",
                "result": "/toolResponse/functionResponses/0/response" }
        }"#,
        assumed: &[],
    },
    FarPreset {
        name: "elevenlabs_agents",
        settings: r#"{
            "session": { "status": 200, "body": { "signed_url": "{{session.url}}" } },
            "accept": "conversation_initiation_client_data",
            "accepted": { "type": "conversation_initiation_metadata", "conversation_initiation_metadata_event": {
                "conversation_id": "{{session.id}}", "agent_output_audio_format": "{{audio.out}}",
                "user_input_audio_format": "{{audio.in}}" } },
            "audio_in": { "type": "/user_audio_chunk", "pointer": "/user_audio_chunk" },
            "audio_out": { "type": "audio", "audio_event": { "audio_base_64": "{{audio}}",
                "event_id": "{{audio.number}}" } },
            "words": { "type": "agent_response", "agent_response_event": { "agent_response": "{{text}}" } },
            "corrected": { "type": "agent_response_correction", "agent_response_correction_event": {
                "original_agent_response": "{{text}}", "corrected_agent_response": "{{text.said}}" } },
            "cut": { "type": "interruption", "interruption_event": { "event_id": "{{audio.number}}" } },
            "ping": { "type": "ping", "ping_event": { "event_id": "{{ping.number}}", "ping_ms": null } },
            "pong": "pong",
            "tool": [{ "type": "agent_tool_request", "agent_tool_request": { "tool_name": "check_opening_hours",
                "tool_call_id": "{{tool.id}}_hours", "tool_type": "webhook", "event_id": "{{audio.number}}" } },
                { "type": "agent_tool_response", "agent_tool_response": { "tool_name": "check_opening_hours",
                "tool_call_id": "{{tool.id}}_hours", "tool_type": "webhook", "is_error": false, "is_called": true,
                "event_id": "{{audio.number}}" } },
                { "type": "client_tool_call", "client_tool_call": { "tool_name": "{{tool.name}}",
                "tool_call_id": "{{tool.id}}", "parameters": "{{tool.arguments}}" } }],
            "tool_answer": { "type": "client_tool_result", "id": "/tool_call_id", "result": "/result" }
        }"#,
        assumed: &["the members of agent_tool_request and agent_tool_response"],
    },
    FarPreset {
        name: "deepgram_voice_agent",
        settings: r#"{
            "open": { "type": "Welcome", "request_id": "{{session.id}}" },
            "accept": "Settings", "accepted": { "type": "SettingsApplied" },
            "format_in": { "format": "/audio/input/encoding", "rate": "/audio/input/sample_rate" },
            "format_out": { "format": "/audio/output/encoding", "rate": "/audio/output/sample_rate" },
            "speech": { "type": "AgentStartedSpeaking", "total_latency": 0.3, "tts_latency": 0.1,
                "ttt_latency": 0.2 },
            "words": { "type": "ConversationText", "role": "assistant", "content": "{{text}}" },
            "done": { "type": "AgentAudioDone" },
            "cut": { "type": "UserStartedSpeaking" },
            "tool": { "type": "FunctionCallRequest", "functions": [{ "id": "{{tool.id}}", "name": "{{tool.name}}",
                "arguments": "{{tool.arguments_text}}", "client_side": true }] },
            "tool_answer": { "type": "FunctionCallResponse", "id": "/id", "result": "/content" },
            "known": "KeepAlive"
        }"#,
        assumed: &[],
    },
    FarPreset {
        name: "ultravox",
        settings: r#"{
            "session": { "status": 201, "body": { "callId": "{{session.id}}", "joinUrl": "{{session.url}}" } },
            "open": { "type": "call_started", "callId": "{{session.id}}" },
            "format_in": { "rate": "/medium/serverWebSocket/inputSampleRate" },
            "format_out": { "rate": "/medium/serverWebSocket/outputSampleRate" },
            "speech": { "type": "state", "state": "speaking" },
            "words": { "type": "transcript", "role": "agent", "medium": "voice", "text": "{{text}}", "final": true,
                "ordinal": "{{turn.number}}" },
            "done": { "type": "state", "state": "listening" },
            "cut": [{ "type": "playback_clear_buffer" }, { "type": "state", "state": "listening" }],
            "tool": { "type": "client_tool_invocation", "toolName": "{{tool.name}}", "invocationId": "{{tool.id}}",
                "parameters": "{{tool.arguments}}" },
            "tool_answer": { "type": "client_tool_result", "id": "/invocationId", "result": "/result" },
            "end": { "type": "hang_up" },
            "known": "ping | user_text_message | set_output_medium"
        }"#,
        assumed: &["all messages: no package has types of them"],
    },
    FarPreset {
        name: "assemblyai_voice_agent",
        settings: r#"{
            "accept": "session.update", "accepted": { "type": "session.ready", "session_id": "{{session.id}}" },
            "audio_in": { "type": "input.audio", "pointer": "/audio" },
            "audio_out": { "type": "reply.audio", "data": "{{audio}}" },
            "speech": { "type": "reply.started", "reply_id": "{{response.id}}" },
            "words": { "type": "transcript.agent", "reply_id": "{{response.id}}", "text": "{{text}}",
                "interrupted": false },
            "done": { "type": "reply.done", "reply_id": "{{response.id}}", "status": "completed" },
            "cut": { "type": "reply.done", "reply_id": "{{response.id}}", "status": "interrupted" },
            "tool": [{ "type": "tool.call", "call_id": "{{tool.id}}", "name": "{{tool.name}}",
                "arguments": "{{tool.arguments}}" },
                { "type": "reply.done", "reply_id": "{{response.id}}_tool", "status": "completed" }],
            "tool_answer": { "type": "tool.result", "id": "/call_id", "result": "/result" },
            "end": { "type": "session.end", "send": { "type": "session.ended" } }
        }"#,
        assumed: &["all messages: no package has types of them"],
    },
    FarPreset {
        name: "cartesia_agent",
        settings: r#"{
            "accept": "session_create",
            "accepted": { "type": "session_ready", "call_id": "{{session.id}}", "agent_id": "{{agent.id}}",
                "agent_version_id": "av_desk", "audio": "{{message/audio}}" },
            "format_in": { "format": "/audio/input_format" }, "format_out": { "format": "/audio/input_format" },
            "audio_in": { "type": "audio_input", "pointer": "/audio" },
            "audio_out": { "type": "audio_output", "audio": "{{audio}}" },
            "speech": { "type": "turn_started", "turn": "{{turn.number}}", "role": "assistant" },
            "words": { "type": "turn_output_text_delta", "turn": "{{turn.number}}", "role": "assistant",
                "text": "{{text}}" },
            "done": { "type": "turn_ended", "turn": "{{turn.number}}", "role": "assistant", "text": "{{text}}",
                "interrupted": false, "tool_calls": [] },
            "cut": [{ "type": "audio_output_clear" }, { "type": "turn_ended", "turn": "{{turn.number}}",
                "role": "assistant", "text": "{{text}}", "interrupted": true, "tool_calls": [] }],
            "tool": { "type": "client_tool_call", "tool_call_id": "{{tool.id}}", "tool_name": "{{tool.name}}",
                "parameters": "{{tool.arguments}}", "expects_response": true },
            "tool_answer": { "type": "client_tool_result", "id": "/tool_call_id", "result": "/result" },
            "digit": { "type": "dtmf_input", "pointer": "/digit" }
        }"#,
        assumed: &["all messages: no package has types of them"],
    },
    FarPreset {
        name: "vapi_websocket",
        settings: r#"{
            "session": { "status": 201, "body": { "id": "{{session.id}}", "transport": {
                "provider": "vapi.websocket", "websocketCallUrl": "{{session.url}}" } } },
            "format_in": { "format": "/transport/audioFormat/format", "rate": "/transport/audioFormat/sampleRate" },
            "format_out": { "format": "/transport/audioFormat/format", "rate": "/transport/audioFormat/sampleRate" },
            "end": { "type": "end-call" }
        }"#,
        assumed: &["no message of control: its shapes are not documented"],
    },
];
