//! Files in `multipart/form-data` (RFC 7578). The whole body was read before, within its limit.

use std::convert::Infallible;

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use futures_util::stream;
use multer::Multipart;
use ringer_model::Object;
use serde_json::Value;

/// Name of the part that holds the file.
const FILE: &str = "file";
/// Bytes that the reader of a form is given at once.
const PIECE: usize = 64 * 1024;
/// Most parts of a form that are read.
const MAX_PARTS: usize = 64;

/// A file as it was sent.
#[derive(Clone, Debug)]
pub struct Upload {
    /// File name at the sender; `None`: not given.
    pub name: Option<String>,
    /// Content of the file.
    pub bytes: Bytes,
}

/// A form as it was sent.
#[derive(Clone, Debug, Default)]
pub struct Form {
    /// Text parts by name; of a repeated name the last counts.
    pub fields: Object,
    /// File part; `None`: there is none.
    pub file: Option<Upload>,
}

/// Reads a form. A body of another content type gives an empty one.
///
/// # Errors
/// The body does not conform to its content type.
pub async fn read_form(headers: &HeaderMap, bytes: &Bytes) -> Result<Form, multer::Error> {
    let mut form = Form::default();
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let Ok(boundary) = multer::parse_boundary(kind) else { return Ok(form) };
    // The reader copies what it is given: in small pieces, so that only the file itself is in memory twice.
    let pieces = (0..bytes.len()).step_by(PIECE).map(|at| bytes.slice(at..bytes.len().min(at + PIECE)));
    let pieces: Vec<_> = pieces.map(Ok::<Bytes, Infallible>).collect();
    let mut parts = Multipart::new(stream::iter(pieces), boundary);
    for _ in 0..MAX_PARTS {
        let Some(part) = parts.next_field().await? else { break };
        let (name, file_name) = (part.name().unwrap_or_default().to_owned(), part.file_name().map(str::to_owned));
        if name == FILE {
            form.file = Some(Upload { name: file_name, bytes: part.bytes().await? });
        } else {
            form.fields.insert(name, Value::String(part.text().await?));
        }
    }
    Ok(form)
}
