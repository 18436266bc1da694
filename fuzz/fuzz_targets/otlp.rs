//! Spans of agents (OTLP): read or refused in both forms; identifiers are hexadecimal digits, and attributes are JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringer_provider::otlp::read_request;

fuzz_target!(|data: &[u8]| {
    let Some((form, body)) = data.split_first() else { return };
    let Ok(spans) = read_request(body, form % 2 == 1) else { return };
    for span in spans {
        let is_hex = |text: &str| text.bytes().all(|digit| digit.is_ascii_hexdigit());
        assert!(is_hex(&span.trace) && is_hex(&span.id) && span.parent.as_deref().is_none_or(is_hex));
        assert!(serde_json::to_vec(&span.attributes).is_ok());
    }
});
