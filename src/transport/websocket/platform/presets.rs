//! Presets of adapters: the settings of protocols that platforms speak, as data.
//!
//! Each row names its sources, and when they were read. Values that no source confirms are in `assumed`; `ringer
//! doctor` lists those in use.

/// Settings of a protocol, by its name.
pub(super) struct Preset {
    pub(super) name: &'static str,
    /// Settings in JSON, as `[adapters.Pn]` takes them.
    pub(super) settings: &'static str,
    /// Defaults that no documentation confirms.
    pub(super) assumed: &'static [&'static str],
}

/// Assumption of presets whose messages no test can have read by the types of a package.
const UNTYPED: &str = "no package has types of its messages";

pub(super) static PRESETS: [Preset; 16] = [
    // openai-python 3.57.0, types/realtime (2026-11).
    Preset {
        name: "openai_realtime",
        settings: r#"{
            "url": "wss://api.openai.com/v1/realtime?model={{agent.id}}", "auth": "bearer",
            "first_after": "session.created",
            "first": { "type": "session.update", "session": { "type": "realtime", "audio": {
                "input": { "format": "{{audio.format}}" }, "output": { "format": "{{audio.format}}" } } } },
            "ready": "session.updated",
            "agent_first": true, "agent_first_message": { "type": "response.create" },
            "encoding": "L16", "rate": 24000,
            "formats": { "L16/24000": { "type": "audio/pcm", "rate": 24000 }, "PCMU/8000": { "type": "audio/pcmu" },
                "PCMA/8000": { "type": "audio/pcma" } },
            "audio_out": { "type": "input_audio_buffer.append", "pointer": "/audio" },
            "audio_in": { "type": "response.output_audio.delta | response.audio.delta", "pointer": "/delta",
                "item": "/item_id", "part": "/content_index" },
            "clear": { "type": "input_audio_buffer.speech_started", "answer": { "type": "conversation.item.truncate",
                "item_id": "{{item.id}}", "content_index": "{{item.part}}", "audio_end_ms": "{{item.played_ms}}" } },
            "text": { "type": "response.output_audio_transcript.done | response.audio_transcript.done",
                "pointer": "/transcript" },
            "tool": { "type": "response.function_call_arguments.done", "id": "/call_id", "name": "/name",
                "arguments": "/arguments", "answer": { "type": "conversation.item.create", "item": {
                    "type": "function_call_output", "call_id": "{{tool.id}}", "output": "{{tool.result}}" } },
                "after": "response.done", "then": { "type": "response.create" } },
            "error": { "type": "error", "code": "/error/code", "message": "/error/message",
                "fatal": "/error/code=session_expired | /error/code=invalid_api_key | /error/code=insufficient_quota" },
            "call_id": { "type": "session.created", "pointer": "/session/id" },
            "limit": { "type": "error & /error/code=session_expired", "close": 1001 }
        }"#,
        assumed: &["the codes of errors that end a call"],
    },
    // google-genai 3.6.1, live.py and types.py (2026-11).
    Preset {
        name: "gemini_live",
        settings: concat!(
            r#"{
            "url": "wss://generativelanguage.googleapis.com/ws/"#,
            r#"google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent?key={{integration.key}}",
            "first": { "setup": { "model": "models/{{agent.id}}",
                "generationConfig": { "responseModalities": ["AUDIO"] }, "outputAudioTranscription": {},
                "sessionResumption": {} } },
            "ready": "/setupComplete", "limit": "/goAway",
            "resume": { "type": "/sessionResumptionUpdate", "handle": "/sessionResumptionUpdate/newHandle",
                "first": { "setup": { "sessionResumption": { "handle": "{{resume.handle}}" } } } },
            "encoding": "L16", "rate": 16000, "agent_rate": 24000,
            "audio_out": { "template": { "realtimeInput": { "audio": {
                "data": "{{audio}}", "mimeType": "audio/pcm;rate={{audio.rate}}" } } } },
            "audio_in": { "type": "/serverContent/modelTurn",
                "pointer": "/serverContent/modelTurn/parts/*/inlineData/data" },
            "clear": { "type": "/serverContent/interrupted" },
            "text": { "type": "/serverContent/outputTranscription",
                "delta": "/serverContent/outputTranscription/text",
                "end": "/serverContent/turnComplete | /serverContent/interrupted" },
            "tool": { "type": "/toolCall", "list": "/toolCall/functionCalls/*", "id": "/id", "name": "/name",
                "arguments": "/args", "answer": { "toolResponse": { "functionResponses": [{ "id": "{{tool.id}}",
                    "name": "{{tool.name}}", "response": "{{tool.result_object}}" }] } } }
        }"#
        ),
        assumed: &["the model is the agent's id"],
    },
    // elevenlabs-python 2.78.0, conversational_ai/conversation.py (2026-11).
    Preset {
        name: "elevenlabs_agents",
        settings: concat!(
            r#"{
            "session_url": "https://api.elevenlabs.io/v1/convai/conversation/get-signed-url?agent_id={{agent.id}}",
            "session_method": "GET", "auth": "header xi-api-key", "url_pointer": "/signed_url",
            "first": { "type": "conversation_initiation_client_data", "user_id": "{{result.id}}",
                "dynamic_variables": { "simulation_result_id": "{{result.id}}" } },
            "ready": "conversation_initiation_metadata",
            "agreed": { "in": "/conversation_initiation_metadata_event/agent_output_audio_format",
                "out": "/conversation_initiation_metadata_event/user_input_audio_format" },
            "encoding": "L16", "rate": 16000,
            "audio_out": { "template": { "user_audio_chunk": "{{audio}}" } },
            "audio_in": { "type": "audio", "pointer": "/audio_event/audio_base_64",
                "event_id": "/audio_event/event_id" },
            "clear": { "type": "interruption", "event_id": "/interruption_event/event_id" },
            "ping": "ping", "pong": { "type": "pong", "event_id": "{{message/ping_event/event_id}}" },
            "text": { "type": "agent_response", "pointer": "/agent_response_event/agent_response" },
            "tool": [{ "type": "client_tool_call", "id": "/client_tool_call/tool_call_id",
                "name": "/client_tool_call/tool_name", "arguments": "/client_tool_call/parameters",
                "answer": { "type": "client_tool_result", "tool_call_id": "{{tool.id}}", "result": "{{tool.result}}",
                    "is_error": false } },
                { "type": "/agent_tool_response/tool_type=webhook | /agent_tool_response/tool_type=mcp | "#,
            r#"/agent_tool_response/tool_type=system",
                "id": "/agent_tool_response/tool_call_id", "name": "/agent_tool_response/tool_name" }],
            "error": { "type": "error", "code": "/error_event/code", "message": "/error_event/message", "fatal": "*" },
            "call_id": { "type": "conversation_initiation_metadata",
                "pointer": "/conversation_initiation_metadata_event/conversation_id" }
        }"#
        ),
        assumed: &["every error ends a call", "the members of agent_tool_response"],
    },
    // deepgram-sdk 7.17.0, agent/v1 (2026-11).
    Preset {
        name: "deepgram_voice_agent",
        settings: r#"{
            "url": "wss://agent.deepgram.com/v1/agent/converse", "auth": "token",
            "first_after": "Welcome",
            "first": { "type": "Settings", "tags": ["{{result.id}}"], "audio": {
                "input": { "encoding": "{{audio.format}}", "sample_rate": "{{audio.rate}}" },
                "output": { "encoding": "{{audio.format}}", "sample_rate": "{{audio.agent_rate}}",
                    "container": "none" } }, "agent": "{{agent.id}}" },
            "ready": "SettingsApplied",
            "encoding": "L16", "rate": 24000,
            "formats": { "L16": "linear16", "PCMU": "mulaw", "PCMA": "alaw" },
            "clear": { "type": "UserStartedSpeaking" },
            "text": { "type": "ConversationText & /role=assistant", "pointer": "/content" },
            "tool": { "type": "FunctionCallRequest", "list": "/functions/*", "id": "/id", "name": "/name",
                "arguments": "/arguments", "if": "/client_side", "answer": { "type": "FunctionCallResponse",
                    "id": "{{tool.id}}", "name": "{{tool.name}}", "content": "{{tool.result}}" } },
            "error": { "type": "Error", "code": "/code", "message": "/description", "fatal": "*" },
            "call_id": { "type": "Welcome", "pointer": "/request_id" }
        }"#,
        assumed: &["every Error ends a call"],
    },
    // fixie-ai/ultradox, apps and docs; texts and tools as ultravox-client 0.1.0 reads and answers them, which holds
    // its calls in rooms (2026-11).
    Preset {
        name: "ultravox",
        settings: r#"{
            "session_url": "https://api.ultravox.ai/api/agents/{{agent.id}}/calls", "auth": "header X-API-Key",
            "session_body": { "metadata": { "simulation_result_id": "{{result.id}}" }, "medium": { "serverWebSocket": {
                "inputSampleRate": "{{audio.rate}}", "outputSampleRate": "{{audio.agent_rate}}",
                "clientBufferSizeMs": 30000 } } },
            "url_pointer": "/joinUrl", "id_pointer": "/callId",
            "ready": "call_started",
            "encoding": "L16", "rate": 16000,
            "clear": { "type": "playback_clear_buffer" },
            "text": { "type": "transcript & /role=agent", "pointer": "/text", "delta": "/delta",
                "end": "transcript & /role=agent & /final" },
            "tool": { "type": "client_tool_invocation", "id": "/invocationId", "name": "/toolName",
                "arguments": "/parameters", "answer": { "type": "client_tool_result", "invocationId": "{{tool.id}}",
                    "result": "{{tool.result}}" } },
            "end": { "send": { "type": "hang_up" } },
            "call_id": { "type": "call_started", "pointer": "/callId" }
        }"#,
        assumed: &["rate 16000", UNTYPED],
    },
    // AssemblyAI documentation of its voice agents (2026-11). Its package of 1.8.2 has none.
    Preset {
        name: "assemblyai_voice_agent",
        settings: r#"{
            "url": "wss://agents.assemblyai.com/v1/ws", "auth": "bearer",
            "first": { "type": "session.update", "session": { "agent_id": "{{agent.id}}" } },
            "ready": "session.ready",
            "encoding": "L16", "rate": 24000, "chunk_ms": 50,
            "audio_out": { "type": "input.audio", "pointer": "/audio" },
            "audio_in": { "type": "reply.audio", "pointer": "/data" },
            "clear": { "type": "reply.done & /status=interrupted" },
            "text": { "type": "transcript.agent", "pointer": "/text" },
            "tool": { "type": "tool.call", "id": "/call_id", "name": "/name", "arguments": "/arguments",
                "after": "reply.done", "then": { "type": "tool.result", "call_id": "{{tool.id}}",
                    "result": "{{tool.result}}" } },
            "end": { "type": "session.ended", "send": { "type": "session.end" } },
            "error": { "type": "session.error", "code": "/code", "message": "/message", "fatal": "*" }
        }"#,
        assumed: &["every session.error ends a call", "no place for the result id", UNTYPED],
    },
    // Cartesia documentation of its agents (2026-11). Its package of 4.2.0 has none.
    Preset {
        name: "cartesia_agent",
        settings: r#"{
            "url": "wss://api.cartesia.ai/v1/agents/websocket/{{agent.id}}?cartesia_version=2025-04-16",
            "auth": "header X-API-Key",
            "first": { "type": "session_create", "audio": { "input_format": "{{audio.format}}" } },
            "ready": "session_ready",
            "encoding": "L16", "rate": 24000,
            "formats": { "L16/24000": "pcm_24000", "L16/44100": "pcm_44100" },
            "audio_out": { "type": "audio_input", "pointer": "/audio" },
            "audio_in": { "type": "audio_output", "pointer": "/audio" },
            "clear": { "type": "audio_output_clear" },
            "text": { "type": "turn_ended & /role=assistant", "pointer": "/text" },
            "tool": { "type": "client_tool_call", "id": "/tool_call_id", "name": "/tool_name",
                "arguments": "/parameters", "answer": { "type": "client_tool_result", "tool_call_id": "{{tool.id}}",
                    "result": "{{tool.result}}", "is_error": false } },
            "digit": { "send": { "type": "dtmf_input", "digit": "{{digit}}" }, "type": "dtmf_output",
                "pointer": "/digit" },
            "error": { "type": "error", "code": "/code", "message": "/message", "fatal": "/fatal" }
        }"#,
        assumed: &["cartesia_version", "session_create without output_delivery", "no place for the result id", UNTYPED],
    },
    // VapiAI/docs, calls/websocket-transport; the request as vapi_server_sdk 3.0.0 has it (2026-11).
    Preset {
        name: "vapi_websocket",
        settings: r#"{
            "session_url": "https://api.vapi.ai/call", "auth": "bearer",
            "session_body": { "assistantId": "{{agent.id}}",
                "assistantOverrides": { "metadata": { "simulation_result_id": "{{result.id}}" } },
                "transport": { "provider": "vapi.websocket", "audioFormat": {
                    "format": "{{audio.format}}", "container": "raw", "sampleRate": "{{audio.rate}}" } } },
            "url_pointer": "/transport/websocketCallUrl", "id_pointer": "/id",
            "encoding": "L16", "rate": 16000,
            "formats": { "L16/16000": "pcm_s16le", "PCMU/8000": "mulaw" },
            "end": { "send": { "type": "end-call" } }
        }"#,
        assumed: &["no message tells of an interruption, a text or a tool", UNTYPED],
    },
    // Reference of the sessions' method runSession (v1), RunSessionResponse (2026-11). The address needs project and
    // location.
    Preset {
        name: "run_session",
        settings: r#"{
            "transport": "http_chat", "auth": "service_account",
            "body": { "config": { "deployment": "{{agent.P6_deployment_id}}" },
                "inputs": [{ "text": "{{message.text}}" }] },
            "reply_pointer": "/outputs/*/text", "end_pointer": "/outputs/*/endSession",
            "tool": { "list": "/outputs/*/toolCalls/toolCalls/*", "name": "/displayName", "arguments": "/args" }
        }"#,
        assumed: &["the name of a tool call is its displayName"],
    },
    // Reference of the sessions' method detectIntent (v3), ResponseMessage and QueryInput (2026-11). The address is
    // that of the location `global`; others have hosts of their own.
    Preset {
        name: "detect_intent",
        settings: concat!(
            r#"{
            "transport": "http_chat", "auth": "service_account",
            "url": "https://dialogflow.googleapis.com/v3/projects/{{agent.P7_project_id}}/locations/"#,
            r#"{{agent.P7_location}}/agents/{{agent.P7_agent_id}}/sessions/dh-{{conversation.id}}:detectIntent",
            "body": { "queryInput": { "languageCode": "en", "text": { "text": "{{message.text}}" } } },
            "reply_pointer": "/queryResult/responseMessages/*/text/text",
            "end_pointer": "/queryResult/responseMessages/*/endInteraction"
        }"#
        ),
        assumed: &["languageCode en"],
    },
    // Examples of the dialog interface in voiceflow/api-examples (2026-11): traces, of which those of type text and
    // speak hold words.
    Preset {
        name: "dialog_interact",
        settings: r#"{
            "transport": "http_chat",
            "url": "https://general-runtime.voiceflow.com/state/user/dh-{{conversation.id}}/interact",
            "headers": { "Authorization": "{{agent.P10_agent_token}}", "versionID": "{{agent.P10_release}}" },
            "body": { "action": { "type": "text", "payload": "{{message.text}}" } },
            "agent_first_message": { "action": { "type": "launch" } },
            "first_body": { "state": { "variables": "{{agent.P10_agent_parameters}}" } },
            "reply_pointer": "/*/payload/message", "reply_if": "/type=text | /type=speak",
            "end_pointer": "/*/type=end"
        }"#,
        assumed: &["P10_agent_parameters are variables that the first message of a conversation sets"],
    },
    // Settings that stand for themselves, by the name of their `transport`.
    Preset { name: "http_chat", settings: r#"{ "transport": "http_chat" }"#, assumed: &[] },
    Preset { name: "websocket", settings: r#"{ "encoding": "L16", "rate": 16000 }"#, assumed: &[] },
    Preset { name: "webrtc", settings: "{}", assumed: &[] },
    Preset { name: "room", settings: "{}", assumed: &[] },
    Preset { name: "sip", settings: "{}", assumed: &[] },
];
