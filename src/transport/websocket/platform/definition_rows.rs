//! Rows of presets for the definitions of agents: the settings of `[autosync.NAME]` by which a platform's definition is
//! read, as data.
//!
//! Each row names its sources, and when they were read. Presets without a row have no agents with a prompt of their
//! own, or no documented way to read it. A row without an address has one that holds more than the fields of agents.

/// Settings by which the definitions of a preset's platform are read.
#[derive(Debug)]
pub(super) struct DefinitionRow {
    /// Name of the preset of adapters.
    pub(super) preset: &'static str,
    /// Settings in JSON, as `[autosync.NAME]` takes them.
    pub(super) settings: &'static str,
    /// Defaults that no documentation confirms.
    pub(super) assumed: &'static [&'static str],
}

pub(super) static ROWS: [DefinitionRow; 6] = [
    // elevenlabs-python 2.78.0, conversational_ai/agents and types/get_agent_response_model.py (2026-11).
    DefinitionRow {
        preset: "elevenlabs_agents",
        settings: r#"{
            "url": "https://api.elevenlabs.io/v1/convai/agents/{{agent.id}}", "auth": "header xi-api-key",
            "prompt": "/conversation_config/agent/prompt/prompt", "name": "/name", "version": "/version_id"
        }"#,
        assumed: &[],
    },
    // Ultravox documentation, api-reference/agents/agents-get (2026-11).
    DefinitionRow {
        preset: "ultravox",
        settings: r#"{
            "url": "https://api.ultravox.ai/api/agents/{{agent.id}}", "auth": "header X-API-Key",
            "prompt": "/callTemplate/systemPrompt", "name": "/name", "version": "/publishedRevisionId"
        }"#,
        assumed: &[],
    },
    // vapi_server_sdk 3.0.0, assistants and types/assistant.py; messages of the model as open_ai_model.py has them
    // (2026-11).
    DefinitionRow {
        preset: "vapi_websocket",
        settings: r#"{
            "url": "https://api.vapi.ai/assistant/{{agent.id}}", "auth": "bearer",
            "prompt": "/model/messages/*/content", "prompt_if": "/role=system", "name": "/name",
            "version": "/updatedAt"
        }"#,
        assumed: &["all system messages of an assistant are its prompt"],
    },
    // deepgram-sdk 7.17.0, voice_agent/configurations and types/agent_configuration_v1.py (2026-11). The address has
    // the id of a project: https://api.deepgram.com/v1/projects/PROJECT/agents/{{agent.id}}.
    DefinitionRow {
        preset: "deepgram_voice_agent",
        settings: r#"{
            "auth": "token", "prompt": ["/config/think/prompt"], "version": "/updated_at"
        }"#,
        assumed: &[],
    },
    // google-cloud-ces 0.7.2, ces_v1/types/agent.py (2026-11). The address is that of the app's root agent:
    // https://ces.googleapis.com/v1/projects/PROJECT/locations/LOCATION/apps/APP/agents/AGENT.
    DefinitionRow {
        preset: "run_session",
        settings: r#"{
            "auth": "service_account", "prompt": "/instruction", "name": "/displayName", "version": "/etag"
        }"#,
        assumed: &["the prompt of an app is the instruction of its root agent"],
    },
    // google-cloud-dialogflow-cx 2.9.0, dialogflowcx_v3/types/playbook.py (2026-11). The address is that of the
    // location `global`; others have hosts of their own.
    DefinitionRow {
        preset: "detect_intent",
        settings: concat!(
            r#"{
            "auth": "service_account",
            "url": "https://dialogflow.googleapis.com/v3/projects/{{agent.P7_project_id}}/locations/"#,
            r#"{{agent.P7_location}}/agents/{{agent.P7_agent_id}}/playbooks/00000000-0000-0000-0000-000000000000",
            "prompt": ["/goal", "/instruction/guidelines", "/instruction/steps/*/text"],
            "name": "/displayName", "version": "/updateTime"
        }"#
        ),
        assumed: &["the agent begins with its default playbook", "steps inside of steps are no part of the prompt"],
    },
];
