//! Reads `.http` files: what is sent and what must come back.

/// One request and its expected answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Case {
    /// Behaviour that the case shows.
    pub title: String,
    pub method: String,
    pub path: String,
    /// Header lines as written; an empty value takes a default header away.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub status: u16,
    /// Behind the status: the text of `detail`, or JSON that the body must contain.
    pub expect: String,
    /// `type | loc | msg | input | ctx` lines.
    pub items: Vec<String>,
    /// `< name: value` lines behind the status.
    pub answers: Vec<(String, String)>,
}

/// Returns all cases of a file.
pub(super) fn read_cases(text: &str) -> Vec<Case> {
    let blocks = text.split("\n## ").skip(1);
    blocks.map(|block| one(block).unwrap_or_else(|| panic!("no case: {block}"))).collect()
}

fn one(block: &str) -> Option<Case> {
    let mut lines = block.lines().filter(|line| !line.trim().is_empty());
    let mut case = Case { title: lines.next()?.to_owned(), ..Case::default() };
    let (method, path) = lines.next()?.split_once(' ')?;
    (case.method, case.path) = (method.to_owned(), path.to_owned());
    let pair = |line: &str| line.split_once(':').map(|(name, value)| (name.trim().into(), value.trim().into()));
    for line in lines {
        let status = line.get(..3).filter(|_| case.status == 0).and_then(|digits| digits.parse::<u16>().ok());
        if let Some(status) = status.filter(|_| matches!(line.as_bytes().get(3), None | Some(b' '))) {
            case.status = status;
            case.expect = line[3..].trim().to_owned();
        } else if let Some(header) = line.strip_prefix("> ") {
            case.headers.push(pair(header)?);
        } else if let Some(header) = line.strip_prefix("< ") {
            case.answers.push(pair(header)?);
        } else if let Some(hex) = line.strip_prefix("hex ") {
            case.body = (0..hex.len() / 2)
                .map(|at| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).ok())
                .collect::<Option<_>>()?;
        } else if case.status == 0 {
            case.body.extend_from_slice(line.as_bytes());
        } else {
            case.items.push(item(line)?);
        }
    }
    (case.status != 0).then_some(case)
}

/// Returns the item as it must be written: JSON parts stay as they stand in the file, so that digits and order count.
fn item(line: &str) -> Option<String> {
    let parts: Vec<&str> = line.split(" | ").collect();
    let (kind, loc, input) = (parts.first()?, parts.get(1)?, parts.get(3)?);
    let msg = serde_json::Value::from(*parts.get(2)?);
    let ctx = parts.get(4).map(|ctx| format!(",\"ctx\":{ctx}")).unwrap_or_default();
    Some(format!("{{\"type\":\"{kind}\",\"loc\":{loc},\"msg\":{msg},\"input\":{input}{ctx}}}"))
}
