//! Names of the settings of adapters that write over HTTP, and of the places in them.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::presets::PRESETS;

/// Name of the transport.
pub(super) const HTTP_CHAT: &str = "http_chat";

/// Settings that an adapter of this transport can have.
pub(super) const KEYS: [&str; 20] = [
    "preset",
    "transport",
    "url",
    "method",
    "headers",
    "body",
    "agent_first_message",
    "first_body",
    "reply_pointer",
    "reply_if",
    "end_pointer",
    "tool",
    "inbound",
    "auth",
    "session_url",
    "session_method",
    "session_headers",
    "session_body",
    "token_pointer",
    "id_pointer",
];

/// True if a table is one of this transport, by itself or by its preset.
pub(super) fn is_chat_table(table: &Map<String, Value>) -> bool {
    let preset = PRESETS.iter().find(|preset| table.get("preset").is_some_and(|name| name == preset.name));
    let transport = match preset {
        Some(preset) => serde_json::from_str::<Value>(preset.settings).unwrap_or_default()["transport"].take(),
        None => table.get("transport").cloned().unwrap_or_default(),
    };
    transport == HTTP_CHAT
}

/// Takes the settings of an adapter that writes out of those of one that calls, and reads them by `read`.
///
/// # Errors
/// Names the setting of `chat` that cannot be used.
pub(super) fn take_chat<A>(
    table: &mut Map<String, Value>,
    read: impl FnOnce(&Map<String, Value>) -> Result<A, String>,
) -> Result<Option<Arc<A>>, String> {
    let Some(chat) = table.remove("chat") else { return Ok(None) };
    let chat = chat.as_object().ok_or("chat is no table")?;
    if is_chat_table(table) {
        return Err("chat has no effect beside transport = \"http_chat\"".to_owned());
    }
    if !is_chat_table(chat) {
        return Err("chat needs transport = \"http_chat\", or a preset of it".to_owned());
    }
    let adapter = read(chat).map_err(|why| format!("chat: {why}"))?;
    Ok(Some(Arc::new(adapter)))
}

/// True if a place for a part of the message may stand in a setting.
pub(super) fn takes_part(key: &str, field: &str) -> bool {
    match key {
        "body" | "first_body" => ["id", "text", "ends"].contains(&field),
        "agent_first_message" | "headers" => field == "id",
        _ => false,
    }
}
