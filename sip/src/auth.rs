//! Digest authentication, as client and as server: RFC 7616 with the algorithms of RFC 8760, and RFC 2069's form
//! without qop.
//!
//! No secret appears in `Debug` output or in an error.
//!
//! A server's challenge, the client's answer, and the check of it:
//!
//! ```
//! use ringer_sip::Method;
//! use ringer_sip::auth::{Challenge, Credentials, Demand, Verdict};
//! use ringer_sip::message::{Headers, Request};
//!
//! let demand = Demand::new("agents", "alice", "wonderland");
//! let mut refusal = Headers::default();
//! demand.challenges("nonce-1", false).into_iter().for_each(|(name, value)| refusal.push(name, value));
//!
//! let challenge = &Challenge::parse_all(&refusal)[0];
//! let who = Credentials { username: "alice".into(), password: "wonderland".into() };
//! let uri = "sip:agent@192.0.2.1";
//! let mut request = Request::new(Method::Invite, uri);
//! request.headers.push("Authorization", challenge.answer(&who, "INVITE", uri, b"", 1, "cnonce-1"));
//! let verify = |nonce: &str| demand.verify(&request.headers, "INVITE", b"", |given| given == nonce);
//! assert_eq!(verify("nonce-1"), Verdict::Accepted);
//! assert_eq!(verify("nonce-2"), Verdict::Stale);
//! ```

mod login;

use std::fmt;

use md5::Md5;
use sha2::{Digest, Sha256, Sha512_256};

pub(crate) use self::login::{Challenged, Login};
use crate::ids::hex;
use crate::message::Headers;
use crate::text::{quote, split_quoted};
use crate::uri::Params;

/// Hash of a digest, ordered from the weakest.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Algorithm {
    /// MD5 (RFC 1321); the default where a challenge names none.
    Md5,
    /// SHA-256 (FIPS 180-4), 64 hexadecimal digits.
    Sha256,
    /// SHA-512 truncated to 256 bits (FIPS 180-4), 64 hexadecimal digits.
    Sha512_256,
}

impl Algorithm {
    /// Returns the name of the algorithm in challenges and credentials.
    pub fn as_str(self) -> &'static str {
        match self {
            Algorithm::Md5 => "MD5",
            Algorithm::Sha256 => "SHA-256",
            Algorithm::Sha512_256 => "SHA-512-256",
        }
    }

    /// Returns the algorithm of this name, and true for its `-sess` form.
    fn parse(text: &str) -> Option<(Algorithm, bool)> {
        let upper = text.to_ascii_uppercase();
        let (name, session) = upper.strip_suffix("-SESS").map_or((upper.as_str(), false), |name| (name, true));
        let all = [Algorithm::Md5, Algorithm::Sha256, Algorithm::Sha512_256];
        all.into_iter().find(|a| a.as_str() == name).map(|a| (a, session))
    }

    fn hash(self, bytes: &[u8]) -> String {
        match self {
            Algorithm::Md5 => hex(&Md5::digest(bytes)),
            Algorithm::Sha256 => hex(&Sha256::digest(bytes)),
            Algorithm::Sha512_256 => hex(&Sha512_256::digest(bytes)),
        }
    }
}

/// Quality of protection: the parts of a message that a digest covers beside the credentials (RFC 7616 3.4).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Qop {
    /// No protection: no nonce count either (RFC 2069).
    None,
    /// Method and address (`auth`).
    Auth,
    /// Method, address and body (`auth-int`).
    AuthInt,
}

/// A username and its password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Name of the user, as the server knows it.
    pub username: String,
    /// Password in clear; `Debug` leaves it out.
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(secret)")
    }
}

/// One challenge that this library can answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Challenge {
    /// True for a challenge of a proxy (407), false for one of the other side (401).
    pub proxy: bool,
    /// Protection domain whose password is asked for; shown to users.
    pub realm: String,
    /// Value that the server chose for this challenge; it enters the hash.
    pub nonce: String,
    /// Value of the server that goes back to it unchanged; `None` when it sent none.
    pub opaque: Option<String>,
    /// Hash that the answer uses.
    pub algorithm: Algorithm,
    /// True for the `-sess` form: the first hash covers the nonces.
    pub session: bool,
    /// True when the credentials were right and only the nonce was old.
    pub stale: bool,
    /// Protection to use; `auth` where the server leaves a choice.
    pub qop: Qop,
}

impl Challenge {
    /// Reads the challenges of a 401 or 407: the strongest supported one of each realm. Others are left out.
    pub fn parse_all(headers: &Headers) -> Vec<Challenge> {
        let mut best: Vec<Challenge> = Vec::new();
        for (name, proxy) in [("WWW-Authenticate", false), ("Proxy-Authenticate", true)] {
            for challenge in headers.all(name).flat_map(split_challenges).filter_map(|c| Challenge::parse(&c, proxy)) {
                match best.iter_mut().find(|b| b.proxy == proxy && b.realm == challenge.realm) {
                    Some(known) if known.algorithm < challenge.algorithm => *known = challenge,
                    Some(_) => {}
                    None => best.push(challenge),
                }
            }
        }
        best
    }

    fn parse(text: &str, proxy: bool) -> Option<Challenge> {
        let params = digest_params(text)?;
        let (algorithm, session) = Algorithm::parse(params.get("algorithm").unwrap_or("MD5"))?;
        let qop = match params.get("qop").map(str::to_ascii_lowercase) {
            None => Qop::None,
            Some(list) if list.is_empty() => Qop::None,
            Some(list) if list.split(',').any(|q| q.trim() == "auth") => Qop::Auth,
            Some(list) if list.split(',').any(|q| q.trim() == "auth-int") => Qop::AuthInt,
            Some(_) => return None,
        };
        Some(Challenge {
            proxy,
            realm: params.get("realm")?.to_owned(),
            nonce: params.get("nonce")?.to_owned(),
            opaque: params.get("opaque").map(str::to_owned),
            algorithm,
            session,
            stale: params.get("stale").is_some_and(|s| s.eq_ignore_ascii_case("true")),
            qop,
        })
    }

    /// Returns the value of the Authorization (or, for `proxy`, Proxy-Authorization) header field. `count` is the
    /// number of this nonce's uses, from 1.
    pub fn answer(&self, who: &Credentials, method: &str, uri: &str, body: &[u8], count: u32, cnonce: &str) -> String {
        let nc = format!("{count:08x}");
        let response = self.response(who, method, uri, body, &nc, cnonce);
        let mut out = format!(
            "Digest username={}, realm={}, nonce={}, uri={}, response=\"{response}\", algorithm={}{}",
            quote(&who.username),
            quote(&self.realm),
            quote(&self.nonce),
            quote(uri),
            self.algorithm.as_str(),
            if self.session { "-sess" } else { "" },
        );
        if let Some(opaque) = &self.opaque {
            out.push_str(&format!(", opaque={}", quote(opaque)));
        }
        match self.qop {
            Qop::None if !self.session => {}
            Qop::None => out.push_str(&format!(", cnonce=\"{cnonce}\"")),
            Qop::Auth => out.push_str(&format!(", qop=auth, nc={nc}, cnonce=\"{cnonce}\"")),
            Qop::AuthInt => out.push_str(&format!(", qop=auth-int, nc={nc}, cnonce=\"{cnonce}\"")),
        }
        out
    }

    /// Computes the response of RFC 7616 3.4.1 to 3.4.3.
    fn response(&self, who: &Credentials, method: &str, uri: &str, body: &[u8], nc: &str, cnonce: &str) -> String {
        let hash = |text: String| self.algorithm.hash(text.as_bytes());
        let mut a1 = hash(format!("{}:{}:{}", who.username, self.realm, who.password));
        if self.session {
            a1 = hash(format!("{a1}:{}:{cnonce}", self.nonce));
        }
        let a2 = match self.qop {
            Qop::AuthInt => hash(format!("{method}:{uri}:{}", self.algorithm.hash(body))),
            _ => hash(format!("{method}:{uri}")),
        };
        match self.qop {
            Qop::None => hash(format!("{a1}:{}:{a2}", self.nonce)),
            Qop::Auth => hash(format!("{a1}:{}:{nc}:{cnonce}:auth:{a2}", self.nonce)),
            Qop::AuthInt => hash(format!("{a1}:{}:{nc}:{cnonce}:auth-int:{a2}", self.nonce)),
        }
    }
}

/// Reads `Digest a=b, c="d"` as parameters; `None` for another scheme.
fn digest_params(text: &str) -> Option<Params> {
    let (scheme, rest) = text.trim().split_once(char::is_whitespace)?;
    let parts = split_quoted(rest, ',').into_iter().map(|part| Params::parse(part).0);
    scheme.eq_ignore_ascii_case("Digest").then(|| Params(parts.flatten().collect()))
}

/// Splits several challenges in one field: a part that begins with a scheme begins a new one.
fn split_challenges(value: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for part in split_quoted(value, ',') {
        let begins = part.split_once('=').map_or(part, |(name, _)| name).trim().contains(char::is_whitespace);
        match all.last_mut() {
            Some(last) if !begins => last.push_str(&format!(", {part}")),
            _ => all.push(part.to_owned()),
        }
    }
    all
}

/// Credentials that a server asks of callers, and the form of its challenge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Realm of the challenge, shown to the caller.
    pub realm: String,
    /// The only credentials that are accepted.
    pub credentials: Credentials,
    /// Hashes in the order in which they are offered, one challenge each (RFC 8760 2.4: the preferred one first).
    pub algorithms: Vec<Algorithm>,
    /// Protection that the challenge asks for.
    pub qop: Qop,
    /// True to ask as a proxy (407), false to ask as the other side (401).
    pub proxy: bool,
}

impl Demand {
    /// Returns a demand with MD5 and SHA-256, qop `auth`, asked by 401.
    pub fn new(realm: &str, username: &str, password: &str) -> Demand {
        Demand {
            realm: realm.into(),
            credentials: Credentials { username: username.into(), password: password.into() },
            algorithms: vec![Algorithm::Sha256, Algorithm::Md5],
            qop: Qop::Auth,
            proxy: false,
        }
    }

    /// Returns the header fields of the challenge, name and value.
    pub fn challenges(&self, nonce: &str, stale: bool) -> Vec<(&'static str, String)> {
        let name = if self.proxy { "Proxy-Authenticate" } else { "WWW-Authenticate" };
        let qop = match self.qop {
            Qop::None => "",
            Qop::Auth => ", qop=\"auth\"",
            Qop::AuthInt => ", qop=\"auth-int\"",
        };
        let stale = if stale { ", stale=true" } else { "" };
        let value = |a: &Algorithm| {
            format!("Digest realm={}, nonce=\"{nonce}\", algorithm={}{qop}{stale}", quote(&self.realm), a.as_str())
        };
        self.algorithms.iter().map(|a| (name, value(a))).collect()
    }

    /// Checks the credentials of a request. `fresh` returns true for a nonce of this server that is not too old.
    pub fn verify(&self, headers: &Headers, method: &str, body: &[u8], fresh: impl Fn(&str) -> bool) -> Verdict {
        let name = if self.proxy { "Proxy-Authorization" } else { "Authorization" };
        let mut verdict = Verdict::Missing;
        for params in headers.all(name).filter_map(digest_params) {
            if params.get("realm") != Some(self.realm.as_str()) {
                continue;
            }
            match self.judge(&params, method, body) {
                Some(true) if fresh(params.get("nonce").unwrap_or("")) => return Verdict::Accepted,
                Some(true) => verdict = Verdict::Stale,
                _ => verdict = Verdict::Wrong,
            }
        }
        verdict
    }

    fn judge(&self, params: &Params, method: &str, body: &[u8]) -> Option<bool> {
        let (algorithm, session) = Algorithm::parse(params.get("algorithm").unwrap_or("MD5"))?;
        let qop = match params.get("qop") {
            None => Qop::None,
            Some("auth") => Qop::Auth,
            Some("auth-int") => Qop::AuthInt,
            Some(_) => return None,
        };
        if qop != self.qop || !self.algorithms.contains(&algorithm) {
            return None;
        }
        let challenge = Challenge {
            proxy: self.proxy,
            realm: self.realm.clone(),
            nonce: params.get("nonce")?.to_owned(),
            opaque: None,
            algorithm,
            session,
            stale: false,
            qop,
        };
        let (nc, cnonce) = (params.get("nc").unwrap_or(""), params.get("cnonce").unwrap_or(""));
        let expect = challenge.response(&self.credentials, method, params.get("uri")?, body, nc, cnonce);
        let given = params.get("response")?;
        // Every byte is looked at, so that the time taken says nothing about how much was right.
        let differ = expect.bytes().zip(given.bytes()).fold(0, |all, (a, b)| all | (a ^ b.to_ascii_lowercase()));
        let name = params.get("username") == Some(self.credentials.username.as_str());
        Some(name && given.len() == expect.len() && differ == 0)
    }
}

/// Result of the check of a request's credentials.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Right credentials, with a nonce of this server.
    Accepted,
    /// No credentials for this realm.
    Missing,
    /// Right credentials with an old nonce: challenge again with `stale`.
    Stale,
    /// Credentials of this realm with a wrong name, password or digest.
    Wrong,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(values: &[&str]) -> Headers {
        let mut headers = Headers::default();
        for value in values {
            headers.push("WWW-Authenticate", *value);
        }
        headers
    }

    /// RFC 7616 3.9.1 (MD5, SHA-256), RFC 7616 3.9.2 as corrected (SHA-512-256), RFC 2617 3.5 (MD5).
    #[test]
    fn published_vectors_hold() {
        let check = |challenge: &str, who: (&str, &str), uri: &str, cnonce: &str, response: &str| {
            let challenge = Challenge::parse_all(&headers(&[challenge])).remove(0);
            let who = Credentials { username: who.0.into(), password: who.1.into() };
            let value = challenge.answer(&who, "GET", uri, b"", 1, cnonce);
            assert!(value.contains(&format!("response=\"{response}\"")), "{value}");
        };
        let nonce = "nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\"";
        let cnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ";
        let base = format!("Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", {nonce}, opaque=\"x\"");
        let mufasa = ("Mufasa", "Circle of Life");
        check(&format!("{base}, algorithm=MD5"), mufasa, "/dir/index.html", cnonce, "8ca523f5e9506fed4657c9700eebdbec");
        check(
            &format!("{base}, algorithm=SHA-256"),
            mufasa,
            "/dir/index.html",
            cnonce,
            "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1",
        );
        check(
            "Digest realm=\"api@example.org\", qop=\"auth\", algorithm=SHA-512-256, \
             nonce=\"5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK\"",
            ("J\u{e4}s\u{f8}n Doe", "Secret, or not?"),
            "/doe.json",
            "NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v",
            "3798d4131c277846293534c3edc11bd8a5e4cdcbff78b05db9d95eeb1cec68a5",
        );
        check(
            "Digest realm=\"testrealm@host.com\", qop=\"auth,auth-int\", nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\"",
            ("Mufasa", "Circle Of Life"),
            "/dir/index.html",
            "0a4f113b",
            "6629fae49393a05397450978507c4ef1",
        );
    }

    /// Computed by another implementation from RFC 7616 3.4.1 to 3.4.3.
    #[test]
    fn the_body_and_the_session_go_into_the_digest() {
        let check = |algorithm: &str, response: &str| {
            let text = format!("Digest realm=\"f\", nonce=\"n\", qop=\"auth-int\", algorithm={algorithm}");
            let challenge = Challenge::parse_all(&headers(&[&text])).remove(0);
            let who = Credentials { username: "u".into(), password: "secret".into() };
            let value = challenge.answer(&who, "INVITE", "sip:b@h", b"v=0\r\n", 1, "c");
            assert!(value.contains(&format!("response=\"{response}\"")), "{value}");
        };
        check("MD5", "956b99fe65c509621bad581697a5adc1");
        check("MD5-sess", "42d96753d45cc5652d04cc4b89b4a140");
        check("SHA-256", "c27e5015a2d17269fb3d70316d136cc526d4c38a540f5afade29c13de56ca41f");
        check("SHA-256-sess", "cb831ddfba3a2279393620f0b4ff2104768f1dacf04dfc99b54094c5031de1a6");
        check("SHA-512-256", "0d8095f318cc7386b8d8640927817cce8e35bb13d3b34aec615a0cb5511ffc39");
        check("SHA-512-256-sess", "aec5509c1420a1c3029dce00de859bc409d56c7a99c0640cacf9039a57687b9e");
    }

    #[test]
    fn the_strongest_supported_challenge_of_each_realm_is_taken() {
        let check = |values: &[&str], expect: &[(&str, Algorithm, Qop)]| {
            let got = Challenge::parse_all(&headers(values));
            let got: Vec<_> = got.iter().map(|c| (c.realm.as_str(), c.algorithm, c.qop)).collect();
            assert_eq!(got, expect, "{values:?}");
        };
        check(
            &["Digest realm=\"a\", nonce=\"1\"", "Digest realm=\"a\", nonce=\"2\", algorithm=SHA-256, qop=\"auth\""],
            &[("a", Algorithm::Sha256, Qop::Auth)],
        );
        check(
            &[
                "Digest realm=\"a\", nonce=\"1\", algorithm=SHA-512-256",
                "Digest realm=\"a\", nonce=\"2\", algorithm=MD5",
            ],
            &[("a", Algorithm::Sha512_256, Qop::None)],
        );
        check(
            &["Digest realm=\"a, b\",nonce=\"1\",qop=\"auth-int\", Digest realm=\"c\", nonce=\"2\""],
            &[("a, b", Algorithm::Md5, Qop::AuthInt), ("c", Algorithm::Md5, Qop::None)],
        );
        check(&["Digest realm=\"a\", nonce=\"1\", algorithm=AKAv1-MD5", "Basic realm=\"x\""], &[]);
    }

    #[test]
    fn a_server_accepts_the_right_password_only() {
        let check = |password: &str, fresh: bool, qop: Qop, algorithm: Algorithm, expect: Verdict| {
            let demand = Demand { qop, algorithms: vec![algorithm], ..Demand::new("r", "u", "right") };
            let values = demand.challenges("n1", false);
            let challenge = Challenge::parse_all(&headers(&[&values[0].1])).remove(0);
            let who = Credentials { username: "u".into(), password: password.into() };
            let mut sent = Headers::default();
            sent.push("Authorization", challenge.answer(&who, "INVITE", "sip:a@b", b"body", 1, "c"));
            assert_eq!(demand.verify(&sent, "INVITE", b"body", |n| fresh && n == "n1"), expect);
            assert!(!format!("{demand:?} {who:?} {sent:?}").contains("right"));
        };
        for algorithm in [Algorithm::Md5, Algorithm::Sha256, Algorithm::Sha512_256] {
            for qop in [Qop::None, Qop::Auth, Qop::AuthInt] {
                check("right", true, qop, algorithm, Verdict::Accepted);
                check("right", false, qop, algorithm, Verdict::Stale);
                check("wrong", true, qop, algorithm, Verdict::Wrong);
            }
        }
        let none = Demand::new("r", "u", "p").verify(&Headers::default(), "INVITE", b"", |_| true);
        assert_eq!(none, Verdict::Missing);
    }
}
