//! Resources: files of a result, and the schema of suites. Each file has a size limit, since an assistant reads it
//! whole.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

use crate::cli::run::client::{Client, Trouble};
use crate::cli::run::schema;

/// Largest file that is given, in bytes.
const MOST_BYTES: usize = 8 * 1024 * 1024;
/// Beginning of the addresses of a result's files.
const RESULTS: &str = "ringer://results/";
/// Address of the schema of suites.
const SCHEMA: &str = "ringer://suite-schema";

/// A file of a result: its name, the route below the result, its type, and what it is.
struct FileOf {
    name: &'static str,
    route: &'static str,
    mime: &'static str,
    about: &'static str,
}

const FILES: [FileOf; 7] = [
    FileOf { name: "timeline", route: "timeline", mime: "application/json", about: "every event of the conversation" },
    FileOf {
        name: "transcript",
        route: "transcript",
        mime: "application/json",
        about: "words of both sides with times",
    },
    FileOf { name: "turns", route: "turns", mime: "application/json", about: "turns with latencies and overlaps" },
    FileOf {
        name: "ladder",
        route: "ladder",
        mime: "application/json",
        about: "messages of signalling, secrets masked",
    },
    FileOf {
        name: "recording.wav",
        route: "recording",
        mime: "audio/wav",
        about: "the recording, caller left, agent right",
    },
    FileOf {
        name: "recording.flac",
        route: "recording?format=flac",
        mime: "audio/flac",
        about: "the recording, about half as large",
    },
    FileOf {
        name: "recording.opus",
        route: "recording?format=opus",
        mime: "audio/ogg",
        about: "the recording as Ogg Opus, a small fraction as large",
    },
];

/// Returns the resources that are always there.
pub(super) fn constants() -> Vec<Resource> {
    vec![
        Resource::new(SCHEMA, "suite-schema")
            .with_title("JSON Schema of suites")
            .with_description("What a suite for run_suite may say")
            .with_mime_type("application/schema+json"),
    ]
}

/// Returns the addresses of a result's files.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    let template = |file: &FileOf| {
        ResourceTemplate::new(format!("{RESULTS}{{result_id}}/{}", file.name), file.name)
            .with_description(format!("Of a result: {}. At most {} MiB.", file.about, MOST_BYTES >> 20))
            .with_mime_type(file.mime)
    };
    FILES.iter().map(template).collect()
}

/// Reads a resource.
///
/// # Errors
/// There is none at this address, it is too large, or the key may not read it.
pub(super) async fn contents_of(client: &Client, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    if uri == SCHEMA {
        let text = ResourceContents::text(format!("{:#}", schema::schema()), uri);
        return Ok(ReadResourceResult::new(vec![text.with_mime_type("application/schema+json")]));
    }
    let none = |why: String| ErrorData::resource_not_found(why, Some(json!({ "uri": uri })));
    let parts = uri.strip_prefix(RESULTS).and_then(|rest| rest.split_once('/'));
    let found = parts.and_then(|(id, name)| Some((id, FILES.iter().find(|file| file.name == name)?)));
    let is_number = |id: &str| !id.is_empty() && id.len() < 20 && id.chars().all(|c| c.is_ascii_digit());
    let Some((id, file)) = found.filter(|(id, _)| is_number(id)) else {
        let names: Vec<&str> = FILES.iter().map(|file| file.name).collect();
        return Err(none(format!("there is no resource {uri}; a result has {RESULTS}ID/ and {}", names.join(", "))));
    };
    let path = format!("/v1/simulation-result/{id}/{}", file.route);
    let found = client.file_up_to(&path, MOST_BYTES).await.map_err(|trouble| match &trouble {
        Trouble::Refused(refusal) if refusal.status == 404 => none(refusal.message.clone()),
        Trouble::Refused(_) | Trouble::Key(_) => ErrorData::invalid_request(trouble.to_string(), None),
        Trouble::Unreached(_) => ErrorData::internal_error(trouble.to_string(), None),
    })?;
    let bytes = found.map_err(|length| {
        let why = format!(
            "{uri} has {length} bytes or more, and at most {MOST_BYTES} are given here: ask for another form of it, or GET {path}"
        );
        ErrorData::invalid_request(why, Some(json!({ "bytes": length, "most_bytes": MOST_BYTES })))
    })?;
    let contents = match file.mime {
        "application/json" => ResourceContents::text(String::from_utf8_lossy(&bytes), uri),
        _ => ResourceContents::blob(STANDARD.encode(&bytes), uri),
    };
    Ok(ReadResourceResult::new(vec![contents.with_mime_type(file.mime)]))
}
