//! `[storage]`: the object store that files of results, production calls and uploads go to.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Secret, Source};

/// Schemes of addresses of a store, with what each is.
const SCHEMES: [&str; 4] = ["file", "s3", "gs", "az"];

/// Settings of the section `[storage]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Storage {
    /// Address of the store: `s3://BUCKET/PREFIX`, `gs://`, `az://` or `file:///FOLDER`; `None`: the data folder.
    pub url: Option<String>,
    /// Address of the server, where it is not that of the provider.
    pub endpoint: Option<String>,
    /// Region of the bucket; `None`: that of the environment.
    pub region: Option<String>,
    /// Id of the access key of S3, or account of Azure; `None`: as the environment has it.
    pub access_key_id: Option<Secret>,
    /// Secret of that key; `None`: as the environment has it.
    pub secret_access_key: Option<Secret>,
    /// Token of a session of S3; `None`: as the environment has it.
    pub session_token: Option<Secret>,
    /// File with the service account of Google; `None`: as the environment has it.
    pub service_account: Option<String>,
    /// Further options of the store, by their names.
    pub options: BTreeMap<String, Secret>,
    /// True if the server may be reached without TLS.
    pub allow_http: bool,
    /// True if readers of recordings are sent to a signed address of the store.
    pub redirect: bool,
    /// Seconds for which such an address holds.
    pub redirect_s: u64,
    /// Megabytes (2^20 bytes) of a part of an upload.
    pub part_mb: u64,
    /// Seconds for one request to the store.
    pub timeout_s: u64,
    /// Seconds for which a request that failed is made again, before the upload waits for its next time.
    pub retry_s: u64,
    /// Megabytes (2^20 bytes) of local copies of what is stored.
    pub cache_mb: u64,
    /// Hours after which a recording of an engine that nobody has seen since is told lost.
    pub lost_after_h: u64,
}

impl Default for Storage {
    fn default() -> Storage {
        Storage {
            url: None,
            endpoint: None,
            region: None,
            access_key_id: None,
            secret_access_key: None,
            session_token: None,
            service_account: None,
            options: BTreeMap::new(),
            allow_http: false,
            redirect: false,
            redirect_s: 300,
            part_mb: 8,
            timeout_s: 60,
            retry_s: 20,
            cache_mb: 1024,
            lost_after_h: 72,
        }
    }
}

impl Storage {
    pub(super) fn read(&mut self, from: &mut Source) {
        from.maybe_text("storage.url", &mut self.url);
        from.maybe_text("storage.endpoint", &mut self.endpoint);
        from.maybe_text("storage.region", &mut self.region);
        from.secret("storage.access_key_id", &mut self.access_key_id);
        from.secret("storage.secret_access_key", &mut self.secret_access_key);
        from.secret("storage.session_token", &mut self.session_token);
        from.maybe_text("storage.service_account", &mut self.service_account);
        let mut options = BTreeMap::new();
        from.text_map("storage.options", &mut options);
        self.options = options.into_iter().map(|(name, value)| (name, Secret::new(value))).collect();
        from.boolean("storage.allow_http", &mut self.allow_http);
        from.boolean("storage.redirect", &mut self.redirect);
        for (name, range, value) in [
            ("storage.redirect_s", 1..=86_400, &mut self.redirect_s),
            ("storage.part_mb", 5..=1024, &mut self.part_mb),
            ("storage.timeout_s", 1..=3600, &mut self.timeout_s),
            ("storage.retry_s", 1..=240, &mut self.retry_s),
            ("storage.cache_mb", 0..=1_000_000_000, &mut self.cache_mb),
            ("storage.lost_after_h", 1..=87_600, &mut self.lost_after_h),
        ] {
            from.whole(name, range, value);
        }
        if let Some(problem) = self.url.as_deref().and_then(problem_of) {
            from.refuse(format!("storage.url {problem}"));
        }
        if let Some(endpoint) = self.endpoint.as_deref() {
            let is_plain = endpoint.starts_with("http://");
            if !is_plain && !endpoint.starts_with("https://") {
                from.refuse("storage.endpoint must begin with https:// or http://".to_owned());
            } else if is_plain && !self.allow_http {
                from.refuse("storage.endpoint is without TLS: storage.allow_http = true allows that".to_owned());
            }
        }
        if self.access_key_id.is_some() != self.secret_access_key.is_some() {
            from.refuse(
                "storage.access_key_id and storage.secret_access_key are set together or not at all".to_owned(),
            );
        }
        if self.redirect && self.url.as_deref().is_none_or(|url| url.starts_with("file:")) {
            from.refuse("storage.redirect needs a storage.url of s3://, gs:// or az://".to_owned());
        }
    }
}

/// Returns what is wrong with the address of a store; `None`: nothing that its text shows. A text is not shown whole,
/// since it may hold a password.
pub fn problem_of(url: &str) -> Option<String> {
    let Ok(parsed) = url::Url::parse(url) else {
        return Some("must be like s3://BUCKET/PREFIX, gs://BUCKET, az://CONTAINER or file:///FOLDER".to_owned());
    };
    let scheme = parsed.scheme();
    if !SCHEMES.contains(&scheme) {
        return Some(format!("begins with {scheme}:// and must begin with s3://, gs://, az:// or file://"));
    }
    if parsed.password().is_some() || !parsed.username().is_empty() || parsed.query().is_some() {
        return Some("must hold no credentials and no options: they have settings of their own".to_owned());
    }
    match (scheme, parsed.host_str()) {
        ("file", None | Some("")) if parsed.path().len() > 1 => None,
        ("file", _) => Some("must be like file:///FOLDER".to_owned()),
        (_, None | Some("")) => Some(format!("names no bucket: {scheme}://BUCKET/PREFIX")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_stores() {
        for (url, expect) in [
            ("s3://calls", None),
            ("s3://calls/of/ringer", None),
            ("gs://calls", None),
            ("az://calls/x", None),
            ("file:///srv/ringer", None),
            ("file://srv", Some("must be like file:///FOLDER")),
            ("s3://", Some("names no bucket: s3://BUCKET/PREFIX")),
            ("ftp://calls", Some("begins with ftp:// and must begin with s3://, gs://, az:// or file://")),
            ("calls", Some("must be like s3://BUCKET/PREFIX, gs://BUCKET, az://CONTAINER or file:///FOLDER")),
            ("s3://key:secret@calls", Some("must hold no credentials and no options: they have settings of their own")),
        ] {
            assert_eq!(problem_of(url).as_deref(), expect, "{url}");
        }
    }
}
