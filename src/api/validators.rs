//! Entity tags of files, and the conditions that requests make with them (RFC 9110 sections 8.8.3, 13.1.2 and 13.1.5).
//! Dates of the last change are not told, so that conditions on dates are not met.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use axum::body::Body;
use axum::http::header::{ETAG, IF_NONE_MATCH, IF_RANGE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use sha2::{Digest, Sha256};

/// A strong entity tag, with its quotation marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EntityTag(String);

impl EntityTag {
    /// Returns the tag of a stored file seen as `form`: another one after each change of the file.
    pub(super) fn of_file(file: &Metadata, form: &str) -> EntityTag {
        EntityTag(format!("\"{:x}-{:x}-{:x}-{form}\"", file.len(), file.mtime(), file.mtime_nsec()))
    }

    /// Returns the tag of a file with this digest seen as `form`.
    pub(super) fn of_digest(digest: &str, form: &str) -> EntityTag {
        EntityTag(format!("\"{digest}-{form}\""))
    }

    /// Returns the tag of the content that was hashed.
    pub(super) fn of_hash(hash: Sha256) -> EntityTag {
        EntityTag(format!("\"{:x}\"", hash.finalize()))
    }

    /// True if a request has this content already: `If-None-Match` names it, by the weak comparison, or is `*`.
    pub(super) fn is_known(&self, headers: &HeaderMap) -> bool {
        let mut lists = headers.get_all(IF_NONE_MATCH).iter().filter_map(|list| list.to_str().ok());
        let is_it = |tag: &str| tag.strip_prefix("W/").unwrap_or(tag) == self.0;
        lists.any(|list| list.trim() == "*" || list.split(',').map(str::trim).any(is_it))
    }

    /// True if the range of a request is of this content: without `If-Range`, or with this tag in it.
    pub(super) fn has_range(&self, headers: &HeaderMap) -> bool {
        headers.get(IF_RANGE).is_none_or(|tag| tag.as_bytes().trim_ascii() == self.0.as_bytes())
    }

    /// Adds the tag to an answer.
    pub(super) fn add_to(&self, response: &mut Response) {
        if let Ok(tag) = HeaderValue::from_str(&self.0) {
            response.headers_mut().insert(ETAG, tag);
        }
    }

    /// Returns the answer to a request that has the content.
    pub(super) fn not_modified(&self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        self.add_to(&mut response);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_met_by_the_same_tag() {
        let tag = EntityTag("\"a-1\"".to_owned());
        for (given, known, has_range) in [
            ("\"a-1\"", true, true),
            ("W/\"a-1\"", true, false),
            ("\"b\", W/\"a-1\" ,\"c\"", true, false),
            ("*", true, false),
            ("\"a-12\"", false, false),
            ("a-1", false, false),
            ("Mon, 05 Jan 2026 09:00:00 GMT", false, false),
            ("", false, false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(IF_NONE_MATCH, HeaderValue::from_static(given));
            headers.insert(IF_RANGE, HeaderValue::from_static(given));
            assert_eq!((tag.is_known(&headers), tag.has_range(&headers)), (known, has_range), "{given}");
        }
        assert!(!tag.is_known(&HeaderMap::new()) && tag.has_range(&HeaderMap::new()));
    }
}
