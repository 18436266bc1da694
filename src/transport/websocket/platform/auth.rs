//! Proofs of identity that requests to platforms carry: a stored key as it is, a token that this side signs (JWT, RFC
//! 7519, HS256), or an access token that it fetches with the key of a service account (RFC 7523). Nothing is sent here.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hmac::{Hmac, Mac};
use rustls::SignatureScheme;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use url::form_urlencoded;

use super::adapter::{Adapter, Facts, SessionReply, header_value, is_header_name};
use super::address::check_scheme;
use super::fill::{fill, plain};

/// Kind of the token that this side signs.
const HS256: &str = "hs256";
/// Kind of the token that is fetched with the key of a service account.
const SERVICE_ACCOUNT: &str = "service_account";
/// Settings of each kind that has any, beside `kind`.
const KINDS: [(&str, &[&str]); 2] =
    [(HS256, &["kind", "claims", "header", "lasts_s"]), (SERVICE_ACCOUNT, &["kind", "scope"])];

/// Validity of a signed token, in seconds.
const SIGNED_LASTS_S: i64 = 300;
/// Longest validity of a signed token, in seconds.
const SIGNED_MOST_S: u64 = 86_400;
/// Validity of an assertion, and of an access token that names none, in seconds.
const GRANT_LASTS_S: i64 = 3600;
/// Scope of an access token where the settings name none: all interfaces of the cloud that the account belongs to.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// Type of the grant (RFC 7523 2.1).
const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// Request for an access token.
pub struct Grant {
    /// Address of the token endpoint.
    pub url: String,
    /// Name of account and scope that reveals neither.
    pub name: String,
    email: String,
    key_id: Option<String>,
    key: PrivateKeyDer<'static>,
    scope: String,
}

impl std::fmt::Debug for Grant {
    /// Writes neither account nor key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Grant({})", self.name)
    }
}

/// Access token, and the time for which it is valid.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessToken {
    /// Bearer token (RFC 6750).
    pub text: String,
    /// Validity from its arrival, in seconds.
    pub lasts_s: i64,
}

impl std::fmt::Debug for AccessToken {
    /// Writes the validity without the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AccessToken(for {} s)", self.lasts_s)
    }
}

impl Grant {
    /// Reads the key of a service account as it is stored: an object, or its JSON.
    fn parse(stored: &Value, scope: &str) -> Result<Grant, String> {
        let read;
        let account = match stored {
            Value::String(text) => {
                read = serde_json::from_str::<Value>(text).map_err(|_| "the stored credentials are no JSON")?;
                &read
            }
            value => value,
        };
        let member = |name: &str| account.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let needed = |name: &str| member(name).ok_or_else(|| format!("the stored credentials have no {name}"));
        let (url, email, pem) = (needed("token_uri")?, needed("client_email")?, needed("private_key")?);
        check_scheme(url, ["http", "https"]).map_err(|why| format!("token_uri of the stored credentials {why}"))?;
        let key = PrivateKeyDer::from_pem_slice(pem.as_bytes())
            .map_err(|_| "private_key of the stored credentials is no private key in PEM")?;
        let name = hex::encode(Sha256::digest(json!([account, scope]).to_string()));
        Ok(Grant {
            url: url.to_owned(),
            name,
            email: email.to_owned(),
            key_id: member("private_key_id").map(str::to_owned),
            key,
            scope: scope.to_owned(),
        })
    }

    /// Returns the form that asks for the token (RFC 7523 2.1, signed with RS256).
    ///
    /// # Errors
    /// A key that does not sign so.
    pub fn form(&self, now_s: i64) -> Result<String, String> {
        let mut head = json!({ "alg": "RS256", "typ": "JWT" });
        if let Some(id) = &self.key_id {
            head["kid"] = json!(id);
        }
        let claims = json!({ "iss": self.email, "scope": self.scope, "aud": self.url, "iat": now_s,
            "exp": now_s + GRANT_LASTS_S });
        let assertion = compact(&head, &claims, |text| self.sign(text))?;
        Ok(form_urlencoded::Serializer::new(String::new())
            .append_pair("grant_type", GRANT_TYPE)
            .append_pair("assertion", &assertion)
            .finish())
    }

    fn sign(&self, text: &[u8]) -> Result<Vec<u8>, String> {
        let unfit = || "private_key of the stored credentials is no RSA key that can sign".to_owned();
        let key = any_supported_type(&self.key).map_err(|_| unfit())?;
        let signer = key.choose_scheme(&[SignatureScheme::RSA_PKCS1_SHA256]).ok_or_else(unfit)?;
        signer.sign(text).map_err(|_| unfit())
    }

    /// Reads the answer of the token endpoint (RFC 6749 5.1).
    ///
    /// # Errors
    /// An answer without a token, in words without the answer's text.
    pub fn parse_token(&self, body: &[u8]) -> Result<AccessToken, String> {
        let answer: Value = serde_json::from_slice(body).map_err(|_| "token_uri: its answer is no JSON")?;
        let token = answer.get("access_token").and_then(Value::as_str).filter(|token| !token.is_empty());
        let text = token.ok_or("token_uri: its answer has no access_token")?.to_owned();
        let lasts_s = match answer.get("expires_in") {
            None | Some(Value::Null) => GRANT_LASTS_S,
            Some(Value::String(text)) => text.parse().map_err(|_| "token_uri: its expires_in is no number")?,
            Some(value) => value.as_f64().ok_or("token_uri: its expires_in is no number")? as i64,
        };
        Ok(AccessToken { text, lasts_s })
    }
}

/// Returns a token in its compact form (RFC 7515 3.1).
fn compact(head: &Value, claims: &Value, sign: impl Fn(&[u8]) -> Result<Vec<u8>, String>) -> Result<String, String> {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(head), part(claims));
    let signature = URL_SAFE_NO_PAD.encode(sign(signed.as_bytes())?);
    Ok(format!("{signed}.{signature}"))
}

fn hs256(claims: &Value, secret: &str) -> Result<String, String> {
    compact(&json!({ "alg": "HS256", "typ": "JWT" }), claims, |text| {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
        mac.update(text);
        Ok(mac.finalize().into_bytes().to_vec())
    })
}

impl Adapter {
    /// Returns the kind of the proof, and its settings.
    fn auth_kind(&self) -> Option<(&str, Option<&Map<String, Value>>)> {
        match self.setting("auth")? {
            Value::Object(table) => Some((table.get("kind").and_then(Value::as_str).unwrap_or_default(), Some(table))),
            value => Some((value.as_str().unwrap_or_default(), None)),
        }
    }

    /// True if the proof is a token that is made or fetched when it is needed.
    pub fn needs_token(&self) -> bool {
        matches!(self.auth_kind(), Some((HS256 | SERVICE_ACCOUNT, _)))
    }

    /// Returns the request for an access token; `None` where none is needed.
    ///
    /// # Errors
    /// Stored credentials that are missing, or no key of a service account.
    pub fn grant(&self, facts: &Facts) -> Result<Option<Grant>, String> {
        let Some((SERVICE_ACCOUNT, table)) = self.auth_kind() else { return Ok(None) };
        let scope = table.and_then(|table| table.get("scope")).and_then(Value::as_str).unwrap_or(SCOPE);
        let stored = self.stored_key(facts).ok_or("no credentials are stored")?;
        Grant::parse(stored, scope).map(Some)
    }

    /// Returns the stored credential that the proof is made of.
    pub(super) fn stored_key<'f>(&self, facts: &'f Facts) -> Option<&'f Value> {
        let stored = if self.has_agents_host() { &facts.agent } else { &facts.integration };
        stored.get("key")
    }

    /// Returns the header by which this side says who it is.
    pub(super) fn auth(&self, facts: &Facts) -> Result<Vec<(String, String)>, String> {
        let Some((kind, table)) = self.auth_kind() else { return Ok(Vec::new()) };
        let (name, value) = match kind {
            SERVICE_ACCOUNT => match &facts.bearer {
                Some(token) => ("Authorization".to_owned(), format!("Bearer {token}")),
                None => return Err("auth: no access token was fetched".to_owned()),
            },
            HS256 => {
                let token = self.make_token(table, facts)?;
                match table.and_then(|table| table.get("header")).and_then(Value::as_str) {
                    Some(name) => (name.to_owned(), token),
                    None => ("Authorization".to_owned(), format!("Bearer {token}")),
                }
            }
            auth => match stored_header(self.stored_key(facts), auth) {
                Some(header) => header,
                None => return Ok(Vec::new()),
            },
        };
        Ok(vec![(name, header_value("auth", value)?)])
    }

    /// Returns a token that says who this side is, and for which result it speaks.
    fn make_token(&self, table: Option<&Map<String, Value>>, facts: &Facts) -> Result<String, String> {
        let secret = self.stored_key(facts).map(plain).filter(|secret| !secret.is_empty());
        let secret = secret.ok_or("auth: no secret is stored that could sign")?;
        let none = SessionReply::default();
        let own = table.and_then(|table| table.get("claims")).cloned().unwrap_or_else(default_claims);
        let mut claims = fill(&own, &|name: &str| self.value(name, facts, &none));
        let lasts_s = table.and_then(|table| table.get("lasts_s")).and_then(Value::as_i64).unwrap_or(SIGNED_LASTS_S);
        for (name, value) in [("iat", facts.now_s), ("exp", facts.now_s + lasts_s)] {
            if claims.get(name).is_none() {
                claims[name] = json!(value);
            }
        }
        hs256(&claims, &secret)
    }

    /// Checks the setting `auth`.
    pub(super) fn check_auth(&self) -> Result<(), String> {
        const KNOWN: &str = "auth is none of \"bearer\", \"basic\", \"token\", \"header NAME\", \"service_account\", \
                             \"hs256\"";
        let Some((kind, table)) = self.auth_kind() else { return Ok(()) };
        let Some(table) = table else {
            return match kind.split_once(' ').unwrap_or((kind, "")) {
                ("bearer" | "basic" | "token" | SERVICE_ACCOUNT, "") => Ok(()),
                (HS256, "") => self.check_claims(&default_claims()),
                ("header", name) if is_header_name(name) => Ok(()),
                _ => Err(KNOWN.to_owned()),
            };
        };
        let Some((_, keys)) = KINDS.iter().find(|(known, _)| *known == kind) else {
            return Err(format!("auth.kind is none of {}", KINDS.map(|(kind, _)| format!("{kind:?}")).join(", ")));
        };
        if let Some(unknown) = table.keys().find(|key| !keys.contains(&key.as_str())) {
            return Err(format!("auth has no setting {unknown:?}; {kind} has {}", keys.join(", ")));
        }
        let is_text =
            |key: &str| table.get(key).is_none_or(|value| value.as_str().is_some_and(|text| !text.is_empty()));
        if !is_text("scope") {
            return Err("auth.scope must be a string".to_owned());
        }
        if !table.get("header").is_none_or(|name| name.as_str().is_some_and(is_header_name)) {
            return Err("auth.header is no name of a header".to_owned());
        }
        let is_time = |value: &Value| value.as_u64().is_some_and(|lasts_s| (1..=SIGNED_MOST_S).contains(&lasts_s));
        if !table.get("lasts_s").is_none_or(is_time) {
            return Err(format!("auth.lasts_s must be a whole number of 1 to {SIGNED_MOST_S}"));
        }
        match table.get("claims") {
            Some(claims) if !claims.is_object() => Err("auth.claims must be a table".to_owned()),
            None if kind == HS256 => self.check_claims(&default_claims()),
            _ => Ok(()),
        }
    }

    /// Checks that the default claims name a client that platform has.
    fn check_claims(&self, claims: &Value) -> Result<(), String> {
        let is_own = self.platform() == "P11" || !claims.to_string().contains("P11_");
        if is_own { Ok(()) } else { Err("auth needs claims: only P11 has a client_id".to_owned()) }
    }
}

/// Claims where the settings name none: the client, and the user for whom it speaks.
fn default_claims() -> Value {
    json!({ "appId": "{{agent.P11_client_id}}", "sub": "{{result.id}}" })
}

/// Returns the header that carries a stored key; `None` where none is stored.
fn stored_header(key: Option<&Value>, auth: &str) -> Option<(String, String)> {
    let key = credential(key, auth);
    if key.is_empty() {
        return None;
    }
    let (name, value) = match auth.split_once(' ') {
        Some((_, name)) => (name.trim(), key),
        None if auth == "basic" => ("Authorization", format!("Basic {}", STANDARD.encode(key))),
        None if auth == "token" => ("Authorization", format!("Token {key}")),
        None => ("Authorization", format!("Bearer {key}")),
    };
    Some((name.to_owned(), value))
}

/// Returns a stored credential in the form that a kind of authentication needs; empty where none is stored.
fn credential(key: Option<&Value>, auth: &str) -> String {
    match key {
        Some(Value::Object(fields)) => {
            let field = |names: &[&str]| names.iter().find_map(|name| fields.get(*name)).map(plain).unwrap_or_default();
            match auth {
                "basic" => format!("{}:{}", field(&["username", "user"]), field(&["password"])),
                _ => field(&["token", "access_token", "api_key", "key"]),
            }
        }
        Some(value) => plain(value),
        None => String::new(),
    }
}
