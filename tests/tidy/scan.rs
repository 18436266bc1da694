//! Reads Rust source as far as the rules need: what is code, what ships, what is documented. Not a parser.

/// Returns `text` with comments, texts and characters blanked out; line numbers stay.
pub(super) fn code(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = skip(bytes, at);
        if end > at {
            out.extend(text[at..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            at = end;
        } else {
            let c = text[at..].chars().next().expect("`at` is a character boundary below the length");
            out.push(c);
            at += c.len_utf8();
        }
    }
    out
}

/// Returns the end of the comment, text or character that starts at `at`; `at` if none starts there.
fn skip(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let word_before = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    match rest {
        [b'/', b'/', ..] => at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()),
        [b'/', b'*', ..] => at + block_comment(rest),
        [b'"', ..] => at + skip_quoted(rest, b'"'),
        [b'b' | b'c', b'"', ..] if !word_before => at + 1 + skip_quoted(&rest[1..], b'"'),
        [b'r', b'"' | b'#', ..] if !word_before => at + raw(rest, 1),
        [b'b' | b'c', b'r', b'"' | b'#', ..] if !word_before => at + raw(rest, 2),
        [b'\'', b'\\', ..] => at + skip_quoted(rest, b'\''),
        // A character is closed after one (perhaps long) character, a lifetime is not.
        [b'\'', first, ..] => {
            let width = match first {
                0..0x80 => 1,
                0x80..0xe0 => 2,
                0xe0..0xf0 => 3,
                _ => 4,
            };
            if rest.get(1 + width) == Some(&b'\'') { at + width + 2 } else { at }
        }
        _ => at,
    }
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn skip_quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

fn raw(rest: &[u8], prefix: usize) -> usize {
    let hashes = rest[prefix..].iter().take_while(|byte| **byte == b'#').count();
    if rest.get(prefix + hashes) != Some(&b'"') {
        return 0;
    }
    let close: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
    let body = prefix + hashes + 1;
    let end = rest[body..].windows(close.len()).position(|window| window == close);
    end.map_or(rest.len(), |end| body + end + close.len())
}

/// Returns `text` without its test module: what is compiled into the product.
pub(super) fn shipped_code(text: &str) -> &str {
    let mut at = 0;
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let module = lines.peek().is_some_and(|next| next.trim_start().starts_with("mod ") && next.contains('{'));
        if line.trim() == "#[cfg(test)]" && module {
            return &text[..at];
        }
        at += line.len();
    }
    text
}

/// True if the file at `path` is compiled for tests only.
pub(super) fn is_test(path: &str) -> bool {
    path.starts_with("tests/")
        || path.contains("/tests/")
        || path.ends_with("/tests.rs")
        || path.ends_with("testing.rs")
}

/// Returns the line numbers and texts of public items, fields, enum variants and trait functions that have no
/// docstring.
pub(super) fn without_docs(text: &str) -> Vec<(usize, String)> {
    let code = code(shipped_code(text));
    let mut missing = Vec::new();
    let mut depth = 0_usize;
    // Depth of the body of the innermost public enum or trait.
    let mut body: Option<(usize, bool)> = None;
    let mut documented = false;
    let mut attribute = 0_i32;
    for (number, (line, source)) in code.lines().zip(text.lines()).enumerate() {
        let item = line.trim();
        if source.trim_start().starts_with("///") || item.starts_with("#[doc") {
            documented = true;
        } else if attribute > 0 || item.starts_with("#[") {
            attribute += count(item, '[') - count(item, ']');
        } else if !item.is_empty() {
            let inside = body.filter(|(at, _)| *at == depth);
            if !documented && (is_public(item) || inside.is_some_and(|(_, is_enum)| is_member(item, is_enum))) {
                missing.push((number + 1, source.trim().to_owned()));
            }
            documented = false;
            if (item.starts_with("pub enum ") || item.starts_with("pub trait ")) && item.contains('{') {
                body = Some((depth + 1, item.starts_with("pub enum ")));
            }
        }
        depth = depth.saturating_add_signed((count(line, '{') - count(line, '}')) as isize);
        if body.is_some_and(|(at, _)| depth < at) {
            body = None;
        }
    }
    missing
}

fn count(line: &str, wanted: char) -> i32 {
    line.matches(wanted).count() as i32
}

/// True for items that need a docstring. Modules and re-exports need none: a file begins with its own text.
fn is_public(item: &str) -> bool {
    let Some(rest) = item.strip_prefix("pub ") else { return false };
    let module = rest.starts_with("mod ") && rest.ends_with(';');
    !module && !rest.starts_with("use ")
}

fn is_member(item: &str, is_enum: bool) -> bool {
    match is_enum {
        true => item.starts_with(|c: char| c.is_ascii_uppercase()),
        false => ["fn ", "async fn ", "const ", "type "].iter().any(|start| item.starts_with(start)),
    }
}

/// Returns the names of the modules of this package that `code` uses by `crate::`, with their line numbers.
pub(super) fn used_modules(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let whole = at == 0 || !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$');
        if !whole {
            continue;
        }
        let line = code[..at].matches('\n').count() + 1;
        let rest = &code[at + "crate::".len()..];
        found.extend(heads(rest).into_iter().map(|name| (line, name)));
    }
    found
}

/// Returns the first names of a path or of a `{group}` of paths.
fn heads(rest: &str) -> Vec<String> {
    let name = |text: &str| -> String { text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
    let Some(group) = rest.strip_prefix('{') else { return vec![name(rest)] };
    let (mut depth, mut names, mut start) = (0, Vec::new(), true);
    for (at, c) in group.char_indices() {
        match c {
            '}' if depth == 0 => break,
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => start = true,
            c if start && !c.is_whitespace() => {
                names.push(name(&group[at..]));
                start = false;
            }
            _ => {}
        }
    }
    names
}
