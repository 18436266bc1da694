//! Sources of models: a folder, an archive, or an archive at an https URL.

use std::fs::File;
use std::io::Write;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use reqwest::Response;
use sha2::{Digest, Sha256};
use url::Url;

use super::archive::{BYTES_MAX, ENTRIES_MAX, unpack};
use super::place::{create, join, place};
use crate::cli::progress::Progress;
use crate::provider::guard::{Blocked, Guard, ip_allowed};

/// Redirects that are followed.
const REDIRECTS_MAX: usize = 5;
/// Time limit of the whole download.
const PATIENCE: Duration = Duration::from_secs(2 * 3600);

/// Model that is to be brought.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// Folders, archives, parts of a file and URLs, which together are one model.
    pub from: Vec<String>,
    pub name: Option<String>,
    pub sha256: Option<String>,
    pub yes: bool,
    /// True if private addresses and http are allowed too, for tests.
    pub private: bool,
}

/// Files that came, and their hash.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Brought {
    /// Hash of the archive.
    pub sha256: Option<String>,
    /// Files of other names.
    pub passed_over: usize,
}

impl Wanted {
    /// Returns the name of the model's folder.
    pub(crate) fn name(&self) -> Result<String, String> {
        if let Some(name) = &self.name {
            return Ok(name.clone());
        }
        let [from] = &self.from[..] else {
            return Err("a model of several files has no name of its own: give --name".to_owned());
        };
        let path = match is_url(from) {
            true => Url::parse(from).map(|url| url.path().to_owned()).map_err(|_| "the URL is not valid".to_owned())?,
            false => from.clone(),
        };
        let name = Path::new(&path).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(ARCHIVES.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name).to_owned())
    }
}

/// Endings of the names of archives.
const ARCHIVES: [&str; 5] = [".tar.gz", ".tgz", ".tar", ".zip", ".whl"];

fn is_url(from: &str) -> bool {
    from.contains("://")
}

fn is_archive(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| ARCHIVES.iter().any(|end| name.ends_with(end)))
}

/// Brings it into the folder `into`.
///
/// # Errors
/// Says what cannot be had or is refused.
pub(crate) async fn bring(wanted: &Wanted, into: &Path) -> Result<Brought, String> {
    let hash = wanted.sha256.as_deref().map(str::to_lowercase);
    if hash.as_ref().is_some_and(|hash| hash.len() != 64 || !hash.bytes().all(|byte| byte.is_ascii_hexdigit())) {
        return Err("--sha256 is not 64 hexadecimal digits".to_owned());
    }
    if hash.is_some() && wanted.from.len() > 1 {
        return Err("--sha256 is of one archive, and these are several".to_owned());
    }
    let mut brought = Brought { sha256: None, passed_over: 0 };
    for from in &wanted.from {
        let one = bring_one(from, wanted, hash.as_deref(), into).await;
        let one = one.map_err(|why| if wanted.from.len() > 1 { format!("{from:.200}: {why}") } else { why })?;
        brought.passed_over += one.passed_over;
        // The hash of one archive of several tells nobody what the model is.
        brought.sha256 = one.sha256.filter(|_| wanted.from.len() == 1);
    }
    join(into)?;
    Ok(brought)
}

async fn bring_one(from: &str, wanted: &Wanted, hash: Option<&str>, into: &Path) -> Result<Brought, String> {
    if is_url(from) {
        let archive = into.join(".archive");
        let fetched = tokio::time::timeout(PATIENCE, fetch(from, &archive, wanted.private)).await;
        fetched.map_err(|_| format!("it did not come within {} s", PATIENCE.as_secs()))??;
        let brought = of_archive(&archive, hash, !wanted.yes, into)?;
        std::fs::remove_file(&archive).map_err(|cause| cause.to_string())?;
        return Ok(brought);
    }
    let path = Path::new(from);
    let told = std::fs::metadata(path).map_err(|cause| format!("{}: {cause}", path.display()))?;
    match told.is_dir() {
        true if hash.is_some() => Err("--sha256 is of an archive, and this is a folder".to_owned()),
        true => of_folder(path, into),
        // A single file of a model, or a part of one.
        false if !is_archive(path) && place(path).is_some() => {
            let mut copied = Copied { into, ..Copied::default() };
            copied.file(path, told.len())?;
            Ok(Brought { sha256: None, passed_over: 0 })
        }
        false => of_archive(path, hash, false, into),
    }
}

fn of_archive(archive: &Path, hash: Option<&str>, needs_hash: bool, into: &Path) -> Result<Brought, String> {
    let describe = |cause: std::io::Error| format!("{}: {cause}", archive.display());
    let mut file = File::open(archive).map_err(describe)?;
    if file.metadata().map_err(describe)?.len() > BYTES_MAX {
        return Err("the archive is larger than 4 GiB".to_owned());
    }
    let mut digest = Sha256::new();
    std::io::copy(&mut file, &mut digest).map_err(describe)?;
    let found = hex::encode(digest.finalize());
    match hash {
        Some(hash) if hash != found => return Err(format!("its SHA-256 is {found} and not the one of --sha256")),
        None if needs_hash => {
            return Err(format!("its SHA-256 is {found}: give --sha256 {found} if it is the right one, or --yes"));
        }
        _ => {}
    }
    let passed_over = unpack(File::open(archive).map_err(describe)?, into)?;
    Ok(Brought { sha256: Some(found), passed_over })
}

/// Takes the files of a folder and of the folders in it, and unpacks archives there.
fn of_folder(from: &Path, into: &Path) -> Result<Brought, String> {
    let mut copied = Copied { into, ..Copied::default() };
    copied.folder(from, true)?;
    Ok(Brought { sha256: None, passed_over: copied.passed_over })
}

/// Files that were copied so far.
struct Copied<'a> {
    into: &'a Path,
    entries: usize,
    bytes: u64,
    passed_over: usize,
}

impl Default for Copied<'_> {
    fn default() -> Self {
        Copied { into: Path::new(""), entries: 0, bytes: 0, passed_over: 0 }
    }
}

impl Copied<'_> {
    /// Copies the files of a folder, and of those in it where `below` is true.
    fn folder(&mut self, from: &Path, below: bool) -> Result<(), String> {
        let told = |path: &Path, cause: std::io::Error| format!("{}: {cause}", path.display());
        let entries = std::fs::read_dir(from).map_err(|cause| told(from, cause))?;
        let paths = entries.map(|entry| entry.map(|entry| entry.path())).take(ENTRIES_MAX + 1);
        let mut paths = paths.collect::<Result<Vec<_>, _>>().map_err(|cause| told(from, cause))?;
        // Parts without numbers are in the order of their names.
        paths.sort();
        for path in paths {
            self.entries += 1;
            if self.entries > ENTRIES_MAX {
                return Err(format!("the folder has more than {ENTRIES_MAX} entries"));
            }
            // A link in a download is followed like a file: the user named the folder.
            let file = std::fs::metadata(&path).map_err(|cause| told(&path, cause))?;
            if file.is_dir() && below {
                self.folder(&path, false)?;
            } else if file.is_file() && is_archive(&path) {
                self.passed_over += of_archive(&path, None, false, self.into)?.passed_over;
            } else if file.is_file() && place(&path).is_some() {
                self.file(&path, file.len())?;
            } else {
                self.passed_over += 1;
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, bytes: u64) -> Result<(), String> {
        let told = |cause: std::io::Error| format!("{}: {cause}", path.display());
        self.bytes += bytes;
        if self.bytes > BYTES_MAX {
            return Err("its files are larger than 4 GiB".to_owned());
        }
        let Some(place) = place(path) else { return Ok(()) };
        let Some(mut file) = create(self.into, &place)? else { return Ok(()) };
        std::io::copy(&mut File::open(path).map_err(told)?, &mut file).map_err(told)?;
        Ok(())
    }
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
    let name = answer.url().path_segments().and_then(|mut parts| parts.next_back()).unwrap_or_default().to_owned();
    let progress = Progress::of_bytes(&name, answer.content_length());
    while let Some(piece) = answer.chunk().await.map_err(|error| error.without_url().to_string())? {
        bytes += piece.len() as u64;
        if bytes > BYTES_MAX {
            return Err(too_large());
        }
        progress.add(piece.len() as u64);
        file.write_all(&piece).map_err(|cause| format!("{}: {cause}", into.display()))?;
    }
    file.flush().map_err(|cause| cause.to_string())
}
