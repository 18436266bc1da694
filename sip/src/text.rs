//! Quoted strings, as headers and addresses share them (RFC 3261 25.1).

/// Splits at `mark` outside of quoted strings and angle brackets; parts are trimmed.
pub(crate) fn split_quoted(text: &str, mark: char) -> Vec<&str> {
    let (mut parts, mut start, mut quoted, mut angled, mut escaped) = (Vec::new(), 0, false, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '<' => angled = true,
            '>' => angled = false,
            c if c == mark && !angled => {
                parts.push(text[start..at].trim());
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

/// Returns the index of the closing quotation mark in the text after the opening one.
pub(crate) fn end_of_quoted(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let end = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        end.then_some(at)
    })
}

/// Returns the content of a quoted string; other text unchanged.
pub(crate) fn unquote(text: &str) -> String {
    let Some(inner) = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')) else { return text.to_owned() };
    let mut escaped = false;
    inner
        .chars()
        .filter(|c| {
            escaped = *c == '\\' && !escaped;
            !escaped
        })
        .collect()
}

/// Returns `text` as a quoted string.
pub(crate) fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
