//! One SMTP session of the receiving side (RFC 5321), sans-IO: it takes lines and says what to answer or to do.
//!
//! It knows SIZE (RFC 1870), 8BITMIME (RFC 6152), SMTPUTF8 (RFC 6531), PIPELINING (RFC 2920), STARTTLS (RFC 3207) and
//! enhanced status codes (RFC 2034).

/// Longest command line in bytes, with room for the addresses of RFC 6531.
pub(super) const LINE_BYTES: usize = 2048;

/// Limits of a session.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// Bytes of one mail.
    pub mail_bytes: usize,
    /// Recipients of one mail.
    pub recipients: usize,
}

impl Default for SessionLimits {
    fn default() -> SessionLimits {
        SessionLimits { mail_bytes: 25 * 1024 * 1024, recipients: 10 }
    }
}

/// Action that a line of the other side asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Send this answer alone.
    Answer(String),
    /// Find out if mail to this address is taken; answered by [`Session::recipient`].
    Recipient(String),
    /// Send this answer and read the mail; answered by [`Session::take_mail`].
    Data(String),
    /// Send this answer, drop what else has come, and begin TLS; then [`Session::begin_secured`].
    StartTls(String),
    /// Send this answer and close.
    Quit(String),
}

/// State of a session.
#[derive(Debug)]
pub struct Session {
    host: String,
    limits: SessionLimits,
    /// True if STARTTLS is offered.
    can_secure: bool,
    is_greeted: bool,
    /// Sender of the mail that was begun; empty: the null sender.
    sender: Option<String>,
    recipients: Vec<String>,
}

impl Session {
    /// Returns a session of the server `host`; `can_secure`: it has a certificate.
    pub fn new(host: &str, limits: SessionLimits, can_secure: bool) -> Session {
        Session { host: host.to_owned(), limits, can_secure, is_greeted: false, sender: None, recipients: Vec::new() }
    }

    /// Returns the first line of the server.
    pub fn greeting(&self) -> String {
        format!("220 {} ESMTP", self.host)
    }

    /// Takes a command line without its line end.
    pub fn command(&mut self, line: &[u8]) -> Command {
        let answer = |text: &str| Command::Answer(text.to_owned());
        let Ok(line) = str::from_utf8(line) else { return answer("500 5.5.2 the line is not UTF-8") };
        if line.contains(['\0', '\r']) {
            return answer("500 5.5.2 the line holds a control character");
        }
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        match verb.to_ascii_uppercase().as_str() {
            "EHLO" => self.greet(rest, true),
            "HELO" => self.greet(rest, false),
            "MAIL" => self.begin_mail(rest),
            "RCPT" => self.begin_recipient(rest),
            "DATA" if !rest.trim().is_empty() => answer("501 5.5.4 DATA has no parameter"),
            "DATA" if self.recipients.is_empty() => answer("503 5.5.1 RCPT comes first"),
            "DATA" => Command::Data("354 end with a line of one full stop".to_owned()),
            "RSET" => {
                self.reset();
                answer("250 2.0.0 forgotten")
            }
            "NOOP" => answer("250 2.0.0 done"),
            "VRFY" => answer("252 2.0.0 try to send it"),
            "HELP" => answer("214 2.0.0 RFC 5321"),
            "QUIT" => Command::Quit(format!("221 2.0.0 {} closes", self.host)),
            "STARTTLS" if !rest.trim().is_empty() => answer("501 5.5.4 STARTTLS has no parameter"),
            "STARTTLS" if self.can_secure => Command::StartTls("220 2.0.0 begin".to_owned()),
            "STARTTLS" | "AUTH" | "EXPN" | "BDAT" | "ETRN" | "TURN" => answer("502 5.5.1 this is not offered"),
            _ => answer("500 5.5.2 this is no command"),
        }
    }

    /// Answers a recipient that was asked for: taken, unknown, or not known now.
    pub fn recipient(&mut self, address: String, is_known: Option<bool>) -> String {
        match is_known {
            Some(true) => {
                self.recipients.push(address);
                "250 2.1.5 taken".to_owned()
            }
            Some(false) => "550 5.1.1 nobody has this address".to_owned(),
            None => "451 4.3.0 try again later".to_owned(),
        }
    }

    /// Ends the mail that was begun; returns its sender and its recipients.
    pub fn take_mail(&mut self) -> (String, Vec<String>) {
        let mail = (self.sender.take().unwrap_or_default(), std::mem::take(&mut self.recipients));
        self.reset();
        mail
    }

    /// Begins anew on a connection that is encrypted now (RFC 3207 4.2).
    pub fn begin_secured(&mut self) {
        self.can_secure = false;
        self.is_greeted = false;
        self.reset();
    }

    fn reset(&mut self) {
        self.sender = None;
        self.recipients.clear();
    }

    fn greet(&mut self, name: &str, extended: bool) -> Command {
        if name.trim().is_empty() {
            return Command::Answer("501 5.5.4 a name is missing".to_owned());
        }
        self.reset();
        self.is_greeted = true;
        if !extended {
            return Command::Answer(format!("250 {}", self.host));
        }
        let size = format!("SIZE {}", self.limits.mail_bytes);
        let mut lines = vec![self.host.as_str(), "PIPELINING", &size, "8BITMIME", "SMTPUTF8", "ENHANCEDSTATUSCODES"];
        if self.can_secure {
            lines.push("STARTTLS");
        }
        let last = lines.len() - 1;
        let mark = |at: usize| if at == last { ' ' } else { '-' };
        let lines: Vec<String> = lines.iter().enumerate().map(|(at, line)| format!("250{}{line}", mark(at))).collect();
        Command::Answer(lines.join("\r\n"))
    }

    fn begin_mail(&mut self, rest: &str) -> Command {
        let answer = |text: &str| Command::Answer(text.to_owned());
        if !self.is_greeted {
            return answer("503 5.5.1 EHLO comes first");
        }
        if self.sender.is_some() {
            return answer("503 5.5.1 a mail was begun already");
        }
        let Some((path, parameters)) = path_of(rest, "FROM:") else {
            return answer("501 5.5.4 it must be like MAIL FROM:<address>");
        };
        if !path.is_empty() && !is_address(&path) {
            return answer("501 5.1.7 the sender is no address");
        }
        for parameter in parameters.split_whitespace() {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            match name.to_ascii_uppercase().as_str() {
                "SIZE" => match value.parse::<usize>() {
                    Ok(size) if size > self.limits.mail_bytes => return answer("552 5.3.4 the mail is too large"),
                    Ok(_) => {}
                    Err(_) => return answer("501 5.5.4 SIZE needs a number"),
                },
                "BODY" if ["7BIT", "8BITMIME"].iter().any(|body| value.eq_ignore_ascii_case(body)) => {}
                "SMTPUTF8" if value.is_empty() => {}
                _ => return answer("555 5.5.4 a parameter is not known"),
            }
        }
        self.sender = Some(path);
        answer("250 2.1.0 taken")
    }

    fn begin_recipient(&mut self, rest: &str) -> Command {
        let answer = |text: &str| Command::Answer(text.to_owned());
        if self.sender.is_none() {
            return answer("503 5.5.1 MAIL comes first");
        }
        let Some((path, parameters)) = path_of(rest, "TO:") else {
            return answer("501 5.5.4 it must be like RCPT TO:<address>");
        };
        if !parameters.trim().is_empty() {
            return answer("555 5.5.4 a parameter is not known");
        }
        if !is_address(&path) {
            return answer("501 5.1.3 the recipient is no address");
        }
        if self.recipients.len() >= self.limits.recipients {
            return answer("452 4.5.3 too many recipients");
        }
        Command::Recipient(path)
    }
}

/// Returns the path after `FROM:` or `TO:`, without brackets and route (RFC 5321 4.1.1.3), and the parameters.
fn path_of<'a>(rest: &'a str, word: &str) -> Option<(String, &'a str)> {
    let rest = rest.trim_start();
    let start = rest.get(..word.len())?;
    if !start.eq_ignore_ascii_case(word) {
        return None;
    }
    let rest = rest[word.len()..].trim_start().strip_prefix('<')?;
    let (path, parameters) = rest.split_once('>')?;
    let path = match path.strip_prefix('@') {
        Some(route) => route.split_once(':')?.1,
        None => path,
    };
    Some((path.to_owned(), parameters))
}

fn is_address(text: &str) -> bool {
    let parts = text.rsplit_once('@');
    let is_plain = |text: &str| !text.is_empty() && !text.chars().any(|c| c.is_control() || c.is_whitespace());
    text.len() <= 320 && parts.is_some_and(|(local, domain)| is_plain(local) && is_plain(domain))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(can_secure: bool) -> Session {
        Session::new("mx.example", SessionLimits { mail_bytes: 1000, recipients: 2 }, can_secure)
    }

    /// Says lines in order and returns the first word of each answer; recipients of `x.example` are known.
    fn say(session: &mut Session, lines: &[&str]) -> Vec<String> {
        let word = |text: String| text.split([' ', '-']).next().unwrap_or_default().to_owned();
        let mut answers = Vec::new();
        for line in lines {
            answers.push(word(match session.command(line.as_bytes()) {
                Command::Answer(text) | Command::Data(text) | Command::StartTls(text) | Command::Quit(text) => text,
                Command::Recipient(address) => {
                    let is_known = address.ends_with("@x.example");
                    session.recipient(address, Some(is_known))
                }
            }));
        }
        answers
    }

    fn check(lines: &[&str], expect: &[&str]) {
        assert_eq!(say(&mut session(true), lines), expect, "{lines:?}");
    }

    #[test]
    fn a_mail_is_taken_step_by_step() {
        let mut session = session(false);
        let lines =
            ["EHLO a", "MAIL FROM:<b@c.example> SIZE=10 BODY=8BITMIME SMTPUTF8", "rcpt to:<d@x.example>", "DATA"];
        assert_eq!(say(&mut session, &lines), ["250", "250", "250", "354"]);
        assert_eq!(session.take_mail(), ("b@c.example".to_owned(), vec!["d@x.example".to_owned()]));
        assert_eq!(
            say(&mut session, &["DATA", "MAIL FROM:<>", "RCPT TO:<@r.example:d@x.example>"]),
            ["503", "250", "250"]
        );
        assert_eq!(session.take_mail(), (String::new(), vec!["d@x.example".to_owned()]));
    }

    #[test]
    fn commands_out_of_order_and_bad_ones_are_refused() {
        check(&["MAIL FROM:<a@b>"], &["503"]);
        check(&["EHLO", "HELO a", "RCPT TO:<d@x.example>", "DATA"], &["501", "250", "503", "503"]);
        check(&["EHLO a", "MAIL FROM:<a@b>", "MAIL FROM:<a@b>"], &["250", "250", "503"]);
        check(&["EHLO a", "MAIL FROM:a@b", "MAIL TO:<a@b>", "MAIL FROM:<a b@c>"], &["250", "501", "501", "501"]);
        check(&["EHLO a", "MAIL FROM:<a@b> SIZE=1001", "MAIL FROM:<a@b> SIZE=x"], &["250", "552", "501"]);
        check(&["EHLO a", "MAIL FROM:<a@b> X=Y", "MAIL FROM:<a@b> BODY=BINARYMIME"], &["250", "555", "555"]);
        check(
            &["EHLO a", "MAIL FROM:<>", "RCPT TO:<d@y.example>", "RCPT TO:<d>", "DATA"],
            &["250", "250", "550", "501", "503"],
        );
        let three = "RCPT TO:<d@x.example>";
        check(&["EHLO a", "MAIL FROM:<>", three, three, three], &["250", "250", "250", "250", "452"]);
        check(
            &["NOOP", "VRFY a", "HELP", "EXPN a", "AUTH PLAIN", "JUNK", "", "QUIT"],
            &["250", "252", "214", "502", "502", "500", "500", "221"],
        );
        check(&["EHLO a", "MAIL FROM:<a@b>", "RSET", "DATA"], &["250", "250", "250", "503"]);
        assert_eq!(session(true).command(b"EHLO \xff"), Command::Answer("500 5.5.2 the line is not UTF-8".to_owned()));
    }

    #[test]
    fn encryption_begins_everything_anew() {
        let mut session = session(true);
        let Command::Answer(offered) = session.command(b"EHLO a") else { panic!("an answer") };
        assert!(offered.ends_with("250 STARTTLS") && offered.contains("250-SIZE 1000\r\n"), "{offered}");
        assert_eq!(say(&mut session, &["MAIL FROM:<a@b>"]), ["250"]);
        assert!(matches!(session.command(b"STARTTLS"), Command::StartTls(_)));
        session.begin_secured();
        assert_eq!(say(&mut session, &["MAIL FROM:<a@b>", "EHLO a", "STARTTLS"]), ["503", "250", "502"]);
        let Command::Answer(offered) = session.command(b"EHLO a") else { panic!("an answer") };
        assert!(!offered.contains("STARTTLS"), "{offered}");
    }
}
