//! Sources of models: a folder, an archive, or an archive at an https URL.

use std::fs::File;
use std::io::Write;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use reqwest::Response;
use sha2::{Digest, Sha256};
use url::Url;

use super::archive::{BYTES_MAX, ENTRIES_MAX, is_taken, unpack};
use crate::provider::guard::{Blocked, Guard, ip_allowed};

/// Redirects that are followed.
const REDIRECTS_MAX: usize = 5;
/// Time limit of the whole download.
const PATIENCE: Duration = Duration::from_secs(2 * 3600);

/// Model that is to be brought.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub from: String,
    pub name: Option<String>,
    pub sha256: Option<String>,
    pub yes: bool,
    /// True if private addresses and http are allowed too, for tests.
    pub private: bool,
}

/// Files that came, and their hash.
#[derive(Clone, Debug, PartialEq)]
pub struct Brought {
    /// Hash of the archive.
    pub sha256: Option<String>,
    /// Files of other names.
    pub passed_over: usize,
}

impl Wanted {
    fn is_url(&self) -> bool {
        self.from.contains("://")
    }

    /// Returns the name of the model's folder.
    pub fn name(&self) -> Result<String, String> {
        if let Some(name) = &self.name {
            return Ok(name.clone());
        }
        let path = match self.is_url() {
            true => Url::parse(&self.from)
                .map(|url| url.path().to_owned())
                .map_err(|_| "the URL is not valid".to_owned())?,
            false => self.from.clone(),
        };
        let name = Path::new(&path).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let endings = [".tar.gz", ".tgz", ".tar", ".zip", ".whl"];
        Ok(endings.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name).to_owned())
    }
}

/// Brings it into the folder `into`.
///
/// # Errors
/// Says what cannot be had or is refused.
pub async fn bring(wanted: &Wanted, into: &Path) -> Result<Brought, String> {
    let hash = wanted.sha256.as_deref().map(str::to_lowercase);
    if hash.as_ref().is_some_and(|hash| hash.len() != 64 || !hash.bytes().all(|byte| byte.is_ascii_hexdigit())) {
        return Err("--sha256 is not 64 hexadecimal digits".to_owned());
    }
    if wanted.is_url() {
        let archive = into.join(".archive");
        let fetched = tokio::time::timeout(PATIENCE, fetch(&wanted.from, &archive, wanted.private)).await;
        fetched.map_err(|_| format!("it did not come within {} s", PATIENCE.as_secs()))??;
        let brought = of_archive(&archive, hash.as_deref(), !wanted.yes, into)?;
        std::fs::remove_file(&archive).map_err(|cause| cause.to_string())?;
        return Ok(brought);
    }
    let path = Path::new(&wanted.from);
    let told = std::fs::metadata(path).map_err(|cause| format!("{}: {cause}", path.display()))?;
    match told.is_dir() {
        true if hash.is_some() => Err("--sha256 is of an archive, and this is a folder".to_owned()),
        true => of_folder(path, into),
        false => of_archive(path, hash.as_deref(), false, into),
    }
}

fn of_archive(archive: &Path, hash: Option<&str>, needs_hash: bool, into: &Path) -> Result<Brought, String> {
    let told = |cause: std::io::Error| format!("{}: {cause}", archive.display());
    let mut file = File::open(archive).map_err(told)?;
    if file.metadata().map_err(told)?.len() > BYTES_MAX {
        return Err("the archive is larger than 4 GiB".to_owned());
    }
    let mut digest = Sha256::new();
    std::io::copy(&mut file, &mut digest).map_err(told)?;
    let found = hex::encode(digest.finalize());
    match hash {
        Some(hash) if hash != found => return Err(format!("its SHA-256 is {found} and not the one of --sha256")),
        None if needs_hash => {
            return Err(format!("its SHA-256 is {found}: give --sha256 {found} if it is the right one, or --yes"));
        }
        _ => {}
    }
    let passed_over = unpack(File::open(archive).map_err(told)?, into)?;
    Ok(Brought { sha256: Some(found), passed_over })
}

fn of_folder(from: &Path, into: &Path) -> Result<Brought, String> {
    let told = |path: &Path, cause: std::io::Error| format!("{}: {cause}", path.display());
    let (mut passed_over, mut bytes) = (0, 0);
    for (count, entry) in std::fs::read_dir(from).map_err(|cause| told(from, cause))?.enumerate() {
        if count >= ENTRIES_MAX {
            return Err(format!("the folder has more than {ENTRIES_MAX} entries"));
        }
        let path = entry.map_err(|cause| told(from, cause))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // A link in a download is followed like a file: the user named the folder.
        let file = std::fs::metadata(&path).map_err(|cause| told(&path, cause))?;
        if !file.is_file() || !is_taken(&name) {
            passed_over += 1;
            continue;
        }
        bytes += file.len();
        if bytes > BYTES_MAX {
            return Err("its files are larger than 4 GiB".to_owned());
        }
        std::fs::copy(&path, into.join(&name)).map_err(|cause| told(&path, cause))?;
    }
    Ok(Brought { sha256: None, passed_over })
}

/// Fetches a file; each redirect is looked at anew.
async fn fetch(url: &str, into: &Path, private: bool) -> Result<(), String> {
    let mut url = Url::parse(url).map_err(|_| "the URL is not valid".to_owned())?;
    let guard = Guard::by(move |address: IpAddr| ip_allowed(address, private));
    let client = guard.client().map_err(|error| error.without_url().to_string())?;
    for _ in 0..=REDIRECTS_MAX {
        let host = url.host_str().unwrap_or_default().to_owned();
        if url.scheme() != "https" && !private {
            return Err("only https URLs are fetched".to_owned());
        }
        guard.literal(&url).map_err(|blocked| format!("{host} {blocked}"))?;
        let answer = client.get(url.clone()).send().await.map_err(|error| match Blocked::of(&error) {
            Some(blocked) => format!("{host} {blocked}"),
            None => format!("{host} could not be asked: {}", error.without_url()),
        })?;
        if answer.status().is_success() {
            return save(answer, into).await;
        }
        let next = answer.headers().get("location").filter(|_| answer.status().is_redirection());
        let Some(next) = next.and_then(|next| next.to_str().ok()) else {
            return Err(format!("{host} answered {}", answer.status().as_u16()));
        };
        url = url.join(next).map_err(|_| format!("{host} redirects to a URL that is not valid"))?;
    }
    Err(format!("more than {REDIRECTS_MAX} redirects"))
}

async fn save(mut answer: Response, into: &Path) -> Result<(), String> {
    let too_large = || "the archive is larger than 4 GiB".to_owned();
    if answer.content_length().is_some_and(|length| length > BYTES_MAX) {
        return Err(too_large());
    }
    let mut file = File::create(into).map_err(|cause| format!("{}: {cause}", into.display()))?;
    let mut bytes = 0;
    while let Some(piece) = answer.chunk().await.map_err(|error| error.without_url().to_string())? {
        bytes += piece.len() as u64;
        if bytes > BYTES_MAX {
            return Err(too_large());
        }
        file.write_all(&piece).map_err(|cause| format!("{}: {cause}", into.display()))?;
    }
    file.flush().map_err(|cause| cause.to_string())
}
