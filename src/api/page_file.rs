//! The files of the page, and the page of one call that needs no server: everything it shows is inside.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ringer_service::{CallFile, RunFile};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// A file of the page.
pub(super) struct Asset<T = &'static str> {
    /// Path that it is served at.
    pub path: &'static str,
    /// Content type of its text.
    pub content_type: &'static str,
    /// Text as it is served; in the source, with comments.
    pub text: T,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// The document that all views begin with.
pub(super) const SHELL: &str = include_str!("../../web/index.html");

const STYLES: &str = include_str!("../../web/page.css");

/// Declares the modules of the page by their names.
macro_rules! scripts {
    ($($name:literal),+ $(,)?) => {
        [$(Asset {
            path: concat!("/page/", $name),
            content_type: SCRIPT,
            text: include_str!(concat!("../../web/", $name)),
        }),+]
    };
}

/// Modules of the page. Those that a call needs stand first, each behind those that it imports.
const SCRIPTS: [Asset; 43] = scripts![
    "dom.js",
    "told.js",
    "lanes.js",
    "player.js",
    "numbers.js",
    "headline.js",
    "about.js",
    "why.js",
    "ladder.js",
    "mails.js",
    "call.js",
    "runfile.js",
    "file.js",
    "api.js",
    "live.js",
    "review.js",
    "judges.js",
    "runs.js",
    "run.js",
    "start.js",
    "production.js",
    "line.js",
    "forms.js",
    "agentform.js",
    "marks.js",
    "agents.js",
    "hearing.js",
    "caller.js",
    "suite.js",
    "again.js",
    "strips.js",
    "expect.js",
    "compare.js",
    "drafts.js",
    "plans.js",
    "scenario.js",
    "pair.js",
    "questions.js",
    "queue.js",
    "watch.js",
    "settings.js",
    "app.js",
    "docs.js",
];

/// Modules of a page of one call: the first of [`SCRIPTS`].
const OF_A_CALL: usize = 13;

/// Every file but the document, as it is served.
pub(super) static ASSETS: LazyLock<Vec<Asset<String>>> = LazyLock::new(|| {
    let style = Asset { path: "/page/page.css", content_type: STYLE, text: lean_style(STYLES) };
    let scripts =
        SCRIPTS.iter().map(|Asset { path, content_type, text }| Asset { path, content_type, text: lean(text) });
    std::iter::once(style).chain(scripts).collect()
});

/// Returns a module without the parts that only its readers need: types in comments, and indentation.
fn lean(module: &str) -> String {
    let (mut code, mut rest) = (String::with_capacity(module.len()), module);
    while let Some((before, comment)) = rest.split_once("/**") {
        code.push_str(before);
        let behind = comment.split_once("*/").map_or("", |(_, behind)| behind);
        rest = behind.strip_prefix(' ').unwrap_or(behind);
    }
    code.push_str(rest);
    let lines = code.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("// "));
    lines.flat_map(|line| [lean_line(line), "\n".to_owned()]).collect()
}

/// Spaces in scripts that only their readers need, and the same without.
const SPACED: [(&str, &str); 22] = [
    (", ", ","),
    (" => ", "=>"),
    (" = ", "="),
    (" === ", "==="),
    (" !== ", "!=="),
    (" ? ", "?"),
    (" : ", ":"),
    (": ", ":"),
    (" && ", "&&"),
    (" || ", "||"),
    ("{ ", "{"),
    (" }", "}"),
    (") {", "){"),
    (" ?? ", "??"),
    ("; ", ";"),
    (" += ", "+="),
    (" < ", "<"),
    (" > ", ">"),
    (" >= ", ">="),
    (" <= ", "<="),
    ("if (", "if("),
    ("for (", "for("),
];

/// Characters before a slash that begins a regular expression; behind others it divides.
const BEFORE_EXPRESSION: &str = "(,=:[!&|?{};>";

/// Returns a line of a script without spaces that only its readers need. Texts stay, and all behind the first regular
/// expression, since its end is not looked for.
fn lean_line(line: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(line.len()), line);
    let mut from = 0;
    while let Some(at) = rest[from..].find(['"', '\'', '`', '/']).map(|at| from + at) {
        let mark = rest[at..].chars().next().unwrap_or_default();
        if mark == '/' {
            let divides = rest[..at].trim_end().ends_with(|c| !BEFORE_EXPRESSION.contains(c));
            if divides && !rest[at..].starts_with("//") {
                from = at + 1;
                continue;
            }
            out.push_str(&without_spaces(&rest[..at]));
            out.push_str(&rest[at..]);
            return out;
        }
        let end = at + text_length(&rest[at..], mark);
        out.push_str(&without_spaces(&rest[..at]));
        out.push_str(&rest[at..end]);
        (rest, from) = (&rest[end..], 0);
    }
    out + &without_spaces(rest)
}

fn without_spaces(code: &str) -> String {
    SPACED.iter().fold(code.to_owned(), |code, (written, served)| code.replace(written, served))
}

/// Returns the bytes of the text that begins with this mark, with both marks; one without an end takes all.
fn text_length(text: &str, mark: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if c == mark => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// Returns a style sheet without comments, and without the spaces that only its readers need.
fn lean_style(sheet: &str) -> String {
    let (mut code, mut rest) = (String::with_capacity(sheet.len()), sheet);
    while let Some((before, comment)) = rest.split_once("/*") {
        code.push_str(before);
        rest = comment.split_once("*/").map_or("", |(_, behind)| behind);
    }
    code.push_str(rest);
    let lines = code.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut code: String = lines.flat_map(|line| [line, "\n"]).collect();
    for (written, served) in [("; ", ";"), ("{ ", "{"), (" }", "}"), (": ", ":"), (" {", "{"), (";}", "}")] {
        code = code.replace(written, served);
    }
    code
}

/// Returns the page of one call: style, script, data and recording in one document, which may load nothing.
pub(super) fn call_page(file: &CallFile) -> String {
    document(&data_of(file), file.audio.as_deref())
}

/// Returns the page of a run: its list, and its calls with their recordings.
pub(super) fn run_page(file: &RunFile) -> String {
    let mut data = file.data.clone();
    let calls = file.calls.iter().map(|call| {
        let mut data = data_of(call);
        data["sound"] = json!(call.audio.as_ref().map(|audio| STANDARD.encode(audio)));
        data
    });
    data["calls"] = calls.collect();
    document(&data, None)
}

/// Returns the data of a call with the outline of its recording.
fn data_of(file: &CallFile) -> Value {
    let peaks = file.peaks.as_ref().map(|stretch| {
        let bytes: Vec<u8> = stretch.steps.iter().flatten().map(|level| small(*level)).collect();
        json!({
            "step_ms": stretch.zoom.step_ms(), "duration_ms": stretch.duration_ms, "from_ms": stretch.from_ms,
            "levels": STANDARD.encode(bytes),
        })
    });
    let mut data = file.data.clone();
    data["peaks"] = json!(peaks);
    data
}

/// Returns a document with its data and sound, which may load nothing.
fn document(data: &Value, audio: Option<&[u8]>) -> String {
    let script: String = SCRIPTS[..OF_A_CALL].iter().map(|asset| join_module(&lean(asset.text))).collect();
    // Content within an element of the document must not look like the end of the element.
    let data = data.to_string().replace('<', "\\u003c");
    let audio = audio.map(|audio| STANDARD.encode(audio)).unwrap_or_default();
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text.as_bytes()));
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; media-src blob:; img-src data:; base-uri 'none'",
        hash(&script),
        hash(STYLES)
    );
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Ringer</title>\n\
         <style>{STYLES}</style>\n</head>\n<body>\n<main id=\"main\"></main>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n\
         <script type=\"text/plain\" id=\"audio\">{audio}</script>\n\
         <script type=\"module\">{script}</script>\n</body>\n</html>\n"
    )
}

/// Returns a module as a part of one script: what it imports stands before it.
fn join_module(module: &str) -> String {
    let lines = module.lines().filter(|line| !line.starts_with("import "));
    lines.map(|line| format!("{}\n", line.strip_prefix("export ").unwrap_or(line))).collect()
}

/// Returns a level as one signed byte; what is heard at all does not become silence.
pub(super) fn small(level: i16) -> u8 {
    let scaled = f32::from(level) / 32768.0 * 127.0;
    (if scaled < 0.0 { scaled.floor() } else { scaled.ceil() }).clamp(-127.0, 127.0) as i8 as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small_and_its_modules_can_be_joined() {
        let bytes: usize = ASSETS.iter().map(|asset| asset.text.len()).sum();
        assert!(bytes + SHELL.len() <= 260 * 1024, "{bytes} bytes");
        let mut names = std::collections::BTreeSet::new();
        for asset in &SCRIPTS[..OF_A_CALL] {
            assert!(!asset.text.contains("</script"), "{}", asset.path);
            for line in asset.text.lines() {
                assert!(!line.starts_with("import ") || line.ends_with(';'), "{}: {line}", asset.path);
                let line = line.strip_prefix("export ").unwrap_or(line);
                let line = line.strip_prefix("async ").unwrap_or(line);
                let declares =
                    ["function ", "const ", "let ", "class "].iter().find_map(|word| line.strip_prefix(word));
                let Some(name) = declares else { continue };
                let name: String = name.chars().take_while(|c| c.is_alphanumeric() || *c == '_' || *c == '$').collect();
                assert!(name.is_empty() || names.insert(name.clone()), "{}: {name} is declared twice", asset.path);
            }
        }
        for asset in SCRIPTS {
            // Comments are taken out by their marks alone, and lines are joined by nothing but their ends.
            let quotes = asset.text.lines().map(|line| line.matches('`').count());
            assert!(quotes.clone().all(|count| count % 2 == 0), "{}: a text over several lines", asset.path);
            let code = lean(asset.text);
            assert_eq!(code.matches("/*").count(), code.matches("*/").count(), "{}", asset.path);
        }
        for asset in ASSETS.iter() {
            assert!(!asset.text.contains("innerHTML") && !asset.text.contains("eval("), "{}", asset.path);
            assert!(!asset.text.contains("https://") || asset.path == "/page/start.js", "{}", asset.path);
        }
        assert!(!SHELL.contains("<script>") && !SHELL.contains("style="));
    }

    #[test]
    fn lines_lose_spaces_but_those_of_texts_and_expressions() {
        for (line, expect) in [
            ("const a = (b, c) => { d(\"x = y, z\"); };", "const a=(b,c)=>{d(\"x = y, z\");};"),
            ("a = b / c; d = e / f, g", "a=b / c;d=e / f,g"),
            ("if (/a, b/.test(c)) d = e;", "if(/a, b/.test(c)) d = e;"),
            ("a = 'it\\'s, so' + `x, ${y}`;", "a='it\\'s, so' + `x, ${y}`;"),
            ("import { el, words } from \"./dom.js\";", "import {el,words} from \"./dom.js\";"),
            ("a = b ? \"c\" : d; \u{2013} = \"\u{2013}", "a=b?\"c\":d;\u{2013}=\"\u{2013}"),
        ] {
            assert_eq!(lean_line(line), expect);
        }
    }

    #[test]
    fn a_page_of_a_call_holds_hostile_words_as_data() {
        let data = json!({ "result": { "id": 1, "tags": ["</script><script>alert(1)</script><!--"] } });
        let page = call_page(&CallFile { data, peaks: None, audio: Some(vec![1, 2, 3]) });
        assert!(!page.contains("<script>alert") && !page.contains("<!--"));
        assert!(page.contains("\\u003c/script>") && page.contains(">AQID</script>"));
        assert_eq!(page.matches("<script").count(), 3);
    }

    #[test]
    fn levels_keep_what_is_heard() {
        for (level, expect) in [(0, 0), (1, 1), (-1, -1), (32767, 127), (-32768, -127), (16384, 64)] {
            assert_eq!(small(level) as i8, expect, "{level}");
        }
    }
}
