//! Texts of what a store refuses: where, what, and the setting that mends it. They hold no secret.

use std::error::Error as _;

use object_store::Error;

/// Longest reason of a store that is shown, in characters.
const MOST_CHARS: usize = 300;

/// Answers of a store whose bucket is not there.
const NO_BUCKET: [&str; 3] = ["NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist"];

/// Answers of a store that does not take the credentials, whatever their status.
const REFUSED: [&str; 5] =
    ["SignatureDoesNotMatch", "InvalidAccessKeyId", "AccessDenied", "AuthenticationFailed", "ExpiredToken"];

/// True if an object is not there, in a bucket that is.
pub(super) fn is_missing(error: &Error) -> bool {
    let text = all_of(error);
    matches!(error, Error::NotFound { .. }) && !NO_BUCKET.iter().any(|answer| text.contains(answer))
}

/// Returns what went wrong while `doing` something with an object.
pub(super) fn text(timeout_s: u64, doing: &str, path: &str, error: &Error) -> String {
    let all = all_of(error);
    let says = |answers: &[&str]| answers.iter().any(|answer| all.contains(answer));
    let what = if says(&NO_BUCKET) {
        "its bucket is not there (storage.url)".to_owned()
    } else if matches!(error, Error::Unauthenticated { .. } | Error::PermissionDenied { .. }) || says(&REFUSED) {
        "the credentials are refused, or lack a right (storage.access_key_id and storage.secret_access_key, or those of the \
         environment)"
            .to_owned()
    } else if all.contains("timed out") || all.contains("deadline has elapsed") {
        format!("no answer within {} s (storage.timeout_s)", timeout_s)
    } else if all.contains("onnect") && matches!(error, Error::Generic { .. }) {
        "no connection (storage.endpoint)".to_owned()
    } else {
        "it failed".to_owned()
    };
    let object = if path.is_empty() { String::new() } else { format!(" {path}") };
    format!("{doing}{object}: {what}: {}", reason_of(&all))
}

/// Returns the texts of an error and its causes.
fn all_of(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// Returns the reason in a text: code and message of an answer in XML, else all without the queries of addresses, in
/// which tokens stand.
fn reason_of(text: &str) -> String {
    let member = |name: &str| {
        let rest = text.split_once(&format!("<{name}>"))?.1;
        rest.split_once(&format!("</{name}>")).map(|(value, _)| value.to_owned())
    };
    let reason = match (member("Code"), member("Message")) {
        (Some(code), Some(message)) if !message.is_empty() => format!("{code}: {message}"),
        (Some(code), _) => code,
        _ => {
            let words = text.split_whitespace().map(|word| match word.split_once('?') {
                Some((start, _)) if start.contains('/') => start,
                _ => word,
            });
            words.collect::<Vec<_>>().join(" ")
        }
    };
    reason.chars().take(MOST_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_short_and_hold_no_token() {
        for (text, expect) in [
            ("a <Error><Code>NoSuchBucket</Code><Message>no</Message><Key>x</Key></Error>", "NoSuchBucket: no"),
            ("a <Error><Code>SlowDown</Code><Message></Message></Error>", "SlowDown"),
            ("GET https://a.example/c/x?sig=token&sv=1 failed", "GET https://a.example/c/x failed"),
            ("why?", "why?"),
        ] {
            assert_eq!(reason_of(text), expect);
        }
        assert_eq!(reason_of(&"x".repeat(1000)).len(), MOST_CHARS);
    }
}
