//! Connection to a store: uploads by parts, reads by range, lists and removals. It knows no rows.

use std::fmt;
use std::path::{Path as FilePath, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::ready;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use http::Method;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::signer::Signer;
use object_store::{Certificate, ClientOptions, ObjectStore, ObjectStoreExt, PutPayload, RetryConfig};
use ringer_base::clock::new_id;
use ringer_base::config::{Secret, Storage};
use ringer_base::error::{Error, Result};
use ringer_base::tls::Roots;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{fault, local_fault};

/// Seconds in which a connection must stand.
const CONNECTS_WITHIN: Duration = Duration::from_secs(10);

/// A store of objects. Cheap to clone.
#[derive(Clone)]
pub struct Bucket {
    objects: Arc<dyn ObjectStore>,
    signer: Option<Arc<dyn Signer>>,
    prefix: Path,
    /// Address for display; it holds no secret.
    name: String,
    timeout_s: u64,
    part_bytes: u64,
    secrets: Arc<[Secret]>,
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bucket({:?})", self.name)
    }
}

/// An object as a list names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Path below the prefix of the store.
    pub path: String,
    /// Size of the object in bytes.
    pub bytes: u64,
    /// Time of its last change, milliseconds since 1970.
    pub changed_ms: i64,
}

impl Bucket {
    /// Opens the store of the settings; `None`: they name none. No request is made.
    ///
    /// # Errors
    /// An option that the store does not know, or settings that do not fit together.
    pub fn open(settings: &Storage, roots: &Roots) -> Result<Option<Bucket>, String> {
        let Some(url) = settings.url.as_deref() else { return Ok(None) };
        if let Some(problem) = ringer_base::config::problem_of_storage(url) {
            return Err(format!("storage.url {problem}"));
        }
        ringer_base::tls::install_tls();
        let parsed = url::Url::parse(url).map_err(|error| format!("storage.url: {error}"))?;
        let prefix = Path::from_url_path(parsed.path()).map_err(|error| format!("storage.url: {error}"))?;
        let (objects, signer, prefix) = match parsed.scheme() {
            "file" => (in_folder(&parsed)?, None, Path::default()),
            "s3" => both(s3(settings, url, roots)?, prefix),
            "gs" => both(google(settings, url, roots)?, prefix),
            _ => both(azure(settings, url, roots)?, prefix),
        };
        let given = [&settings.access_key_id, &settings.secret_access_key, &settings.session_token];
        let secrets = given.into_iter().flatten().chain(settings.options.values()).cloned().collect();
        Ok(Some(Bucket {
            objects,
            signer,
            prefix,
            name: url.trim_end_matches('/').to_owned(),
            timeout_s: settings.timeout_s,
            part_bytes: settings.part_mb << 20,
            secrets,
        }))
    }

    /// Returns the address of the store, for display.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn at(&self, path: &str) -> Path {
        path.split('/').filter(|part| !part.is_empty()).fold(self.prefix.clone(), |at, part| at.join(part))
    }

    fn fault(&self, doing: &str, path: &str, error: &object_store::Error) -> Error {
        let text = fault::text(self.timeout_s, doing, path, error);
        Error::internal(format!("object store {}: {}", self.name, self.without_secrets(text)))
    }

    /// Returns a text without what the settings keep secret.
    fn without_secrets(&self, mut text: String) -> String {
        for secret in self.secrets.iter().map(Secret::expose).filter(|secret| secret.len() > 3) {
            text = text.replace(secret, "(set)");
        }
        text
    }

    /// Makes sure that the store answers, with these credentials.
    ///
    /// # Errors
    /// The store's reason.
    pub async fn check(&self) -> Result<()> {
        let mut found = self.objects.list(Some(&self.prefix));
        match found.try_next().await {
            Ok(_) | Err(object_store::Error::NotFound { .. }) if self.name.starts_with("file:") => Ok(()),
            Ok(_) => Ok(()),
            Err(error) => Err(self.fault("listing", "", &error)),
        }
    }

    /// Puts a file of this size and digest into the store, by parts where it is larger than one. Reads it back, and
    /// removes it again where that is not what was put.
    ///
    /// # Errors
    /// The store's reason, or that it gives back other bytes. The file itself changed meanwhile.
    pub async fn put_file(&self, path: &str, file: &FilePath, bytes: u64, sha256: &str) -> Result<()> {
        let mut source = tokio::fs::File::open(file).await.map_err(|error| local_fault(file, error))?;
        if bytes <= self.part_bytes {
            let part = next_part(&mut source, file, self.part_bytes).await?;
            let put = self.objects.put(&self.at(path), PutPayload::from(part)).await;
            put.map_err(|error| self.fault("storing", path, &error))?;
        } else {
            let mut upload = self.objects.put_multipart(&self.at(path)).await;
            let upload = upload.as_mut().map_err(|error| self.fault("storing", path, error))?;
            let stored = async {
                loop {
                    let part = next_part(&mut source, file, self.part_bytes).await?;
                    if part.is_empty() {
                        break;
                    }
                    let put = upload.put_part(PutPayload::from(part)).await;
                    put.map_err(|error| self.fault("storing a part of", path, &error))?;
                }
                upload.complete().await.map(drop).map_err(|error| self.fault("completing", path, &error))
            };
            if let Err(error) = stored.await {
                // Parts that stay are removed by the bucket's own rule.
                let _ = upload.abort().await;
                return Err(error);
            }
        }
        self.verify(path, bytes, sha256).await
    }

    /// Reads an object and compares it.
    async fn verify(&self, path: &str, bytes: u64, sha256: &str) -> Result<()> {
        let found = self.digest(path).await?;
        if found.as_ref().is_some_and(|(size, digest)| (*size, digest.as_str()) == (bytes, sha256)) {
            return Ok(());
        }
        let _ = self.objects.delete(&self.at(path)).await;
        let (name, found) = (
            &self.name,
            found.map_or("nothing".to_owned(), |(size, digest)| format!("{size} bytes, SHA-256 {digest}")),
        );
        Err(Error::internal(format!(
            "{name}: {path}: the store gives back other bytes than it was given: {found}, not {bytes} bytes, SHA-256 {sha256}"
        )))
    }

    /// Returns size and SHA-256 of an object; `None`: it is not there.
    pub async fn digest(&self, path: &str) -> Result<Option<(u64, String)>> {
        let Some(size) = self.size(path).await? else { return Ok(None) };
        let (mut hash, mut at) = (Sha256::new(), 0);
        while at < size {
            let piece = self.read_range(path, at, self.part_bytes.min(size - at)).await?;
            let Some(piece) = piece.filter(|piece| !piece.is_empty()) else { return Ok(None) };
            hash.update(&piece);
            at += piece.len() as u64;
        }
        Ok(Some((size, hex::encode(hash.finalize()))))
    }

    /// Returns the size of an object in bytes; `None`: it is not there.
    pub async fn size(&self, path: &str) -> Result<Option<u64>> {
        match self.objects.head(&self.at(path)).await {
            Ok(found) => Ok(Some(found.size)),
            Err(error) if fault::is_missing(&error) => Ok(None),
            Err(error) => Err(self.fault("looking at", path, &error)),
        }
    }

    /// Reads `count` bytes of an object from a position on; `None`: it is not there.
    pub async fn read_range(&self, path: &str, at: u64, count: u64) -> Result<Option<Vec<u8>>> {
        if count == 0 {
            return Ok(Some(Vec::new()));
        }
        match self.objects.get_range(&self.at(path), at..at + count).await {
            Ok(bytes) => Ok(Some(bytes.to_vec())),
            Err(error) if fault::is_missing(&error) => Ok(None),
            Err(error) => Err(self.fault("reading", path, &error)),
        }
    }

    /// Writes an object of this digest to a file that is whole before it has its name; false: it is not there.
    ///
    /// # Errors
    /// The store's reason, other bytes than were stored, or a folder that cannot be written.
    pub async fn fetch(&self, path: &str, to: &FilePath, bytes: u64, sha256: &str) -> Result<bool> {
        let folder = to.parent().map_or_else(PathBuf::new, FilePath::to_owned);
        tokio::fs::create_dir_all(&folder).await.map_err(|error| local_fault(&folder, error))?;
        let part = folder.join(format!("{}.part", new_id()));
        let written = self.write_to(path, &part, bytes, sha256).await;
        let kept = match written {
            Ok(true) => tokio::fs::rename(&part, to).await.map(|()| true).map_err(|error| local_fault(to, error)),
            other => other,
        };
        if !matches!(kept, Ok(true)) {
            let _ = tokio::fs::remove_file(&part).await;
        }
        kept
    }

    async fn write_to(&self, path: &str, part: &FilePath, bytes: u64, sha256: &str) -> Result<bool> {
        let mut file = tokio::fs::File::create(part).await.map_err(|error| local_fault(part, error))?;
        let (mut hash, mut at) = (Sha256::new(), 0);
        while at < bytes {
            let Some(piece) = self.read_range(path, at, self.part_bytes.min(bytes - at)).await? else {
                return Ok(false);
            };
            if piece.is_empty() {
                break;
            }
            hash.update(&piece);
            at += piece.len() as u64;
            file.write_all(&piece).await.map_err(|error| local_fault(part, error))?;
        }
        file.flush().await.map_err(|error| local_fault(part, error))?;
        let found = hex::encode(hash.finalize());
        if (at, found.as_str()) != (bytes, sha256) {
            return Err(Error::internal(format!(
                "{}: {path}: the store gives back other bytes than it was given: {at} bytes, SHA-256 {found}, not {bytes} bytes, \
                 SHA-256 {sha256}",
                self.name
            )));
        }
        Ok(true)
    }

    /// Returns all of a small object; `None`: it is not there.
    pub(super) async fn read_small(&self, path: &str) -> Result<Option<Vec<u8>>> {
        match self.size(path).await? {
            Some(size) => self.read_range(path, 0, size.min(self.part_bytes)).await,
            None => Ok(None),
        }
    }

    /// Writes a small object.
    pub(super) async fn write_small(&self, path: &str, bytes: &[u8]) -> Result<()> {
        let put = self.objects.put(&self.at(path), PutPayload::from(bytes.to_vec())).await;
        put.map(drop).map_err(|error| self.fault("storing", path, &error))
    }

    /// Removes an object; one that is not there needs nothing.
    pub async fn remove(&self, path: &str) -> Result<()> {
        match self.objects.delete(&self.at(path)).await {
            Err(error) if !fault::is_missing(&error) => Err(self.fault("removing", path, &error)),
            _ => Ok(()),
        }
    }

    /// Returns the objects below a path, as the store names them.
    pub async fn list(&self, below: &str) -> Result<Vec<Listed>> {
        self.stream(below).try_collect().await
    }

    /// Returns the objects below a path one after the other: there may be more than fit into memory.
    pub(super) fn stream<'a>(&'a self, below: &'a str) -> BoxStream<'a, Result<Listed>> {
        let found = self.objects.list(Some(&self.at(below))).map_err(move |error| self.fault("listing", below, &error));
        let listed = found.try_filter_map(move |object| {
            let parts = object.location.prefix_match(&self.prefix);
            let parts = parts.map(|parts| parts.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>());
            let changed_ms = object.last_modified.timestamp_millis();
            let listed = parts.map(|parts| Listed { path: parts.join("/"), bytes: object.size, changed_ms });
            ready(Ok(listed))
        });
        listed.boxed()
    }

    /// Returns an address that anybody may read an object at for some time; `None`: the store has none.
    pub async fn sign_address(&self, path: &str, lasts: Duration) -> Result<Option<String>> {
        let Some(signer) = &self.signer else { return Ok(None) };
        let signed = signer.signed_url(Method::GET, &self.at(path), lasts).await;
        signed.map(|url| Some(url.to_string())).map_err(|error| self.fault("signing an address of", path, &error))
    }
}

/// Reads the next part of a file: all of it but the last has the full size.
async fn next_part(source: &mut tokio::fs::File, file: &FilePath, bytes: u64) -> Result<Vec<u8>> {
    let mut part = Vec::new();
    source.take(bytes).read_to_end(&mut part).await.map_err(|error| local_fault(file, error))?;
    Ok(part)
}

type Opened = (Arc<dyn ObjectStore>, Option<Arc<dyn Signer>>, Path);

fn both<T: ObjectStore + Signer>(store: T, prefix: Path) -> Opened {
    let store = Arc::new(store);
    (store.clone(), Some(store), prefix)
}

fn in_folder(url: &url::Url) -> Result<Arc<dyn ObjectStore>, String> {
    let folder = url.to_file_path().map_err(|()| "storage.url must be like file:///FOLDER".to_owned())?;
    let bad = |error: &dyn std::fmt::Display| format!("storage.url: {}: {error}", folder.display());
    std::fs::create_dir_all(&folder).map_err(|error| bad(&error))?;
    let store = LocalFileSystem::new_with_prefix(&folder).map_err(|error| bad(&error))?;
    Ok(Arc::new(store.with_automatic_cleanup(true)))
}

fn client_of(settings: &Storage, roots: &Roots) -> Result<ClientOptions, String> {
    let mut client = ClientOptions::new()
        .with_allow_http(settings.allow_http)
        .with_connect_timeout(CONNECTS_WITHIN.min(Duration::from_secs(settings.timeout_s)))
        .with_timeout(Duration::from_secs(settings.timeout_s))
        .with_content_type_for_suffix("wav", "audio/wav")
        .with_content_type_for_suffix("jsonl", "application/x-ndjson");
    for root in roots.certificates() {
        let root = Certificate::from_der(root).map_err(|error| format!("tls.root_file: {error}"))?;
        client = client.with_root_certificate(root);
    }
    Ok(client)
}

fn retries(settings: &Storage) -> RetryConfig {
    RetryConfig { max_retries: 5, retry_timeout: Duration::from_secs(settings.retry_s), ..RetryConfig::default() }
}

/// Returns the options of the settings as a store has them.
fn options<Key: FromStr>(settings: &Storage) -> Result<Vec<(Key, &str)>, String> {
    let known = settings.options.iter().map(|(name, value)| match name.parse() {
        Ok(key) => Ok((key, value.expose())),
        Err(_) => Err(format!("storage.options.{name} is no option of this store")),
    });
    known.collect()
}

fn s3(settings: &Storage, url: &str, roots: &Roots) -> Result<object_store::aws::AmazonS3, String> {
    let mut builder = AmazonS3Builder::from_env()
        .with_client_options(client_of(settings, roots)?)
        .with_retry(retries(settings))
        .with_url(url);
    if let Some(endpoint) = &settings.endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    if let Some(region) = &settings.region {
        builder = builder.with_region(region);
    }
    if let (Some(id), Some(secret)) = (&settings.access_key_id, &settings.secret_access_key) {
        builder = builder.with_access_key_id(id.expose()).with_secret_access_key(secret.expose());
    }
    if let Some(token) = &settings.session_token {
        builder = builder.with_token(token.expose());
    }
    for (key, value) in options::<AmazonS3ConfigKey>(settings)? {
        builder = builder.with_config(key, value);
    }
    builder.build().map_err(|error| unfit(settings, &error))
}

fn google(settings: &Storage, url: &str, roots: &Roots) -> Result<object_store::gcp::GoogleCloudStorage, String> {
    let mut builder = GoogleCloudStorageBuilder::from_env()
        .with_client_options(client_of(settings, roots)?)
        .with_retry(retries(settings))
        .with_url(url);
    if let Some(endpoint) = &settings.endpoint {
        builder = builder.with_base_url(endpoint);
    }
    if let Some(account) = &settings.service_account {
        builder = builder.with_service_account_path(account);
    }
    for (key, value) in options::<GoogleConfigKey>(settings)? {
        builder = builder.with_config(key, value);
    }
    builder.build().map_err(|error| unfit(settings, &error))
}

fn azure(settings: &Storage, url: &str, roots: &Roots) -> Result<object_store::azure::MicrosoftAzure, String> {
    let mut builder = MicrosoftAzureBuilder::from_env()
        .with_client_options(client_of(settings, roots)?)
        .with_retry(retries(settings))
        .with_url(url);
    if let Some(endpoint) = &settings.endpoint {
        builder = builder.with_endpoint(endpoint.clone());
    }
    if let (Some(account), Some(key)) = (&settings.access_key_id, &settings.secret_access_key) {
        builder = builder.with_account(account.expose()).with_access_key(key.expose());
    }
    for (key, value) in options::<AzureConfigKey>(settings)? {
        builder = builder.with_config(key, value);
    }
    builder.build().map_err(|error| unfit(settings, &error))
}

/// Returns why settings do not fit a store, without what they keep secret.
fn unfit(settings: &Storage, error: &object_store::Error) -> String {
    let mut text = format!("[storage]: {error}");
    for secret in settings.options.values().chain(&settings.secret_access_key).map(Secret::expose) {
        text = text.replace(secret, "(set)");
    }
    text
}
