//! Refusals of a server: its words without secrets, and the parameter that it means.

use serde_json::Value;
use url::Url;

use super::surrogates;

/// Longest body of a refusal in bytes that is read.
pub(crate) const BODY_BYTES_MAX: usize = 64 << 10;
/// Most characters of a server's words that are told.
const WORDS_CHARS_MAX: usize = 300;
/// Shortest text that is kept secret: shorter ones are found in any text.
const SECRET_CHARS_MIN: usize = 4;
/// Characters of a key by which a server that masks the rest shows which one it means.
const SHOWN_CHARS: usize = 4;
/// Parts of the names of secret parameters of a URL.
const SECRET_NAMES: [&str; 7] = ["key", "token", "secret", "sig", "pass", "auth", "code"];

/// Words by which a server says that it does not take a parameter.
const REFUSING: [&str; 17] = [
    "allowed",
    "cannot",
    "does not",
    "doesn't",
    "extra",
    "instead",
    "invalid",
    "must",
    "not available",
    "not permitted",
    "only",
    "range",
    "support",
    "unexpected",
    "unknown",
    "unrecognized",
    "default",
];

/// Refusal of a request in the server's words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Text of the refusal; empty when there is none.
    pub words: String,
    /// Parameter that it names in a field of its own.
    pub param: Option<String>,
    /// True if the server calls the parameter unsupported, and not its value.
    pub is_unsupported: bool,
}

impl Refusal {
    /// Reads the body of an answer that is no success.
    pub(crate) fn parse(body: &[u8]) -> Refusal {
        match surrogates::read_json(body) {
            Ok(value) => Refusal::of(&value),
            // A page of a proxy tells a person nothing here.
            Err(_) if body.trim_ascii_start().starts_with(b"<") => Refusal::default(),
            Err(_) => Refusal { words: one_line(&String::from_utf8_lossy(body)), ..Refusal::default() },
        }
    }

    /// Reads an error in any of its usual forms.
    pub(crate) fn of(value: &Value) -> Refusal {
        let error = [&value["error"], &value["errors"][0], value].into_iter().find(|part| !part.is_null());
        let error = error.unwrap_or(value);
        let detail = &value["detail"];
        let words =
            [&error["message"], &error["msg"], error, &error["error"], &value["message"], detail, &error["detail"]];
        let words = words.into_iter().find_map(Value::as_str).map(str::to_owned).or_else(|| details(detail));
        let named = detail[0]["loc"]
            .as_array()
            .and_then(|path| path.iter().filter_map(Value::as_str).find(|name| *name != "body"));
        let param = error["param"].as_str().or(named).filter(|name| !name.is_empty());
        let code = error["code"].as_str().unwrap_or_default();
        let words = words.map(|text| one_line(&surrogates::join(&text))).unwrap_or_default();
        Refusal { words, param: param.map(str::to_owned), is_unsupported: code == "unsupported_parameter" }
    }

    /// True if the words say that something is not taken; a word that only looks like a parameter ("stream error") says
    /// nothing.
    pub(crate) fn refuses(&self) -> bool {
        let words = self.words.to_ascii_lowercase();
        self.param.is_some() || self.is_unsupported || REFUSING.iter().any(|word| words.contains(word))
    }

    /// Returns `advice` with the server's words behind it.
    pub(crate) fn with_words(&self, advice: &str) -> String {
        if self.words.is_empty() { advice.to_owned() } else { format!("{advice}: {}", self.words) }
    }
}

/// Returns the words of a list of single faults; their values, which repeat what was sent, are left out.
fn details(list: &Value) -> Option<String> {
    let place = |fault: &Value| {
        let path: Vec<&str> = fault["loc"].as_array()?.iter().filter_map(Value::as_str).collect();
        Some(path.join("."))
    };
    let describe = |fault: &Value| {
        let words = fault["msg"].as_str()?;
        Some(place(fault).map_or(words.to_owned(), |place| format!("{place}: {words}")))
    };
    let all: Vec<String> = list.as_array()?.iter().filter_map(describe).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// Returns one line of limited length.
fn one_line(text: &str) -> String {
    let text: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()).collect();
    let text = text.join(" ");
    match text.char_indices().nth(WORDS_CHARS_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// Texts that may not appear in a message about a server.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// Returns the key of a server, and what is secret in its URL.
    pub(crate) fn of(key: Option<&str>, url: &str) -> Secrets {
        let mut all: Vec<String> = key.map(str::to_owned).into_iter().collect();
        if let Ok(url) = Url::parse(url) {
            all.extend(url.password().map(str::to_owned));
            let is_secret = |name: &str| SECRET_NAMES.iter().any(|part| name.to_ascii_lowercase().contains(part));
            all.extend(url.query_pairs().filter(|(name, _)| is_secret(name)).map(|(_, value)| value.into_owned()));
        }
        all.retain(|secret| secret.chars().count() >= SECRET_CHARS_MIN);
        Secrets(all)
    }

    /// Returns a text without the secrets, and without what a server shows of them.
    pub(crate) fn hidden(&self, text: &str) -> String {
        let text = self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "***"));
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '*' | '.');
        let mut out = String::new();
        let mut rest = text.as_str();
        while let Some(from) = rest.find(is_part) {
            out.push_str(&rest[..from]);
            let length = rest[from..].find(|c: char| !is_part(c)).unwrap_or(rest.len() - from);
            let word = &rest[from..from + length];
            let (name, is_masked) = (word.trim_end_matches('.'), word.contains("**") || word.contains("..."));
            if self.is_shown_in(name, is_masked) {
                out.push_str(if word.len() == name.len() + 1 { "***." } else { "***" });
            } else {
                out.push_str(word);
            }
            rest = &rest[from + length..];
        }
        out.push_str(rest);
        out
    }

    /// True for the beginning or the end of a secret with the rest masked, and for a secret that was cut off.
    fn is_shown_in(&self, word: &str, is_masked: bool) -> bool {
        self.0.iter().any(|secret| {
            let begins =
                secret.char_indices().nth(SHOWN_CHARS).is_some_and(|(end, _)| word.starts_with(&secret[..end]));
            let from = secret.char_indices().rev().nth(SHOWN_CHARS - 1).map_or(0, |(at, _)| at);
            let ends = word.ends_with(&secret[from..]);
            let is_cut = word.len() > SHOWN_CHARS && secret.starts_with(word);
            (is_masked && (begins || ends)) || is_cut
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_words_are_found_in_every_form() {
        let check = |body: &str, words: &str, param: Option<&str>| {
            let refusal = Refusal::parse(body.as_bytes());
            assert_eq!((refusal.words.as_str(), refusal.param.as_deref()), (words, param), "{body}");
        };
        check(r#"{"error":{"message":"No such model.","param":null}}"#, "No such model.", None);
        check(r#"{"error":{"message":"Bad.","param":"seed"}}"#, "Bad.", Some("seed"));
        check(r#"{"error":"does not support\n tools"}"#, "does not support tools", None);
        check(r#"{"object":"error","message":"Bad.","param":"seed"}"#, "Bad.", Some("seed"));
        check(r#"{"detail":"Not here."}"#, "Not here.", None);
        check(
            r#"{"detail":[{"loc":["body","seed"],"msg":"Extra inputs are not permitted","input":7}]}"#,
            "body.seed: Extra inputs are not permitted",
            Some("seed"),
        );
        check(r#"{"errors":[{"message":"Bad."}]}"#, "Bad.", None);
        check(r#""Bad.""#, "Bad.", None);
        check("Too\r\nmany", "Too many", None);
        check("<html>Bad gateway</html>", "", None);
        check("", "", None);
        check("{}", "", None);
        let long = Refusal::parse("é".repeat(1000).as_bytes()).words;
        assert_eq!(long, format!("{}...", "é".repeat(WORDS_CHARS_MAX)));
    }

    #[test]
    fn secrets_are_hidden() {
        let secrets = Secrets::of(Some("sk-sesame-1234"), "https://u:word-of@h/x?api-version=2024&api_key=opensesame");
        let check = |text: &str, expect: &str| assert_eq!(secrets.hidden(text), expect, "{text}");
        check("Incorrect API key provided: sk-sesame-1234.", "Incorrect API key provided: ***.");
        check("Incorrect key 'sk-s****1234' (see 2024)", "Incorrect key '***' (see 2024)");
        check("Incorrect key sk-ses...", "Incorrect key ***");
        check("key ****1234 or opensesame or word-of", "key *** or *** or ***");
        check("cut: sk-sesam", "cut: ***");
        check("sk is a task of 1234 words", "sk is a task of 1234 words");
        assert_eq!(Secrets::of(Some("any"), "http://h").hidden("any model"), "any model");
    }
}
