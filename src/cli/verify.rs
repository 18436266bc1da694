//! `ringer verify`: whether evidence is what an installation has signed.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};

use super::out::Out;
use super::{BAD_USAGE, complain};
use crate::service::{Authorities, Stamped, Verified, verify};

/// Exit code where all fits and nobody knows the key.
const UNKNOWN_KEY: u8 = 3;
/// Length of a public key in bytes.
const KEY_BYTES: usize = 32;

/// Flags of `ringer verify`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ringer verify call-7-evidence.tar --key 1f0c...             a key of `GET /v1/evidence-keys`
  ringer verify call-7-evidence.tar --key keys.json           all keys of that answer, as it was saved
  ringer verify *.tar chain.json --key keys.json              archives of a run, and whether they are in its chain
  ringer verify call-7-evidence.tar --key keys.json --timestamp-ca authority.pem
                                                              the time stamp too, by certificates that you know

The exit code is 0 when all fits and a key that was given has signed it, 1 when something was changed, is missing or signed by another
key, 3 when all fits and no key was given (a key in the archive proves nothing), and 2 for files that cannot be read.")]
pub struct Args {
    /// Archives of evidence, and chains of manifests of `GET /v1/simulation-run/{id}/evidence-chain`
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Public key that is known from elsewhere, 64 hexadecimal digits, or a file with such keys
    #[arg(long, value_name = "KEY")]
    pub key: Vec<String>,
    /// File with certificates, PEM, of authorities whose time stamps count. Each archive is to have a stamp then
    #[arg(long, value_name = "FILE")]
    pub timestamp_ca: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Checks the files and prints what holds.
pub async fn run(args: Args) -> ExitCode {
    let out = Out::standard();
    match tokio::task::spawn_blocking(move || check(&args)).await {
        Ok(Ok((code, lines))) => {
            lines.iter().for_each(|line| out.line(line));
            if out.is_gone() { out.verdict(true) } else { ExitCode::from(code) }
        }
        Ok(Err(problem)) => {
            complain(problem);
            ExitCode::from(BAD_USAGE)
        }
        Err(_) => ExitCode::FAILURE,
    }
}

/// Returns the exit code and the lines to print.
///
/// # Errors
/// Names the key or the file that cannot be read.
fn check(args: &Args) -> Result<(u8, Vec<String>), String> {
    let mut keys = Vec::new();
    for given in &args.key {
        keys.extend(keys_of(given)?);
    }
    let authorities = args.timestamp_ca.as_deref().map(authorities_of).transpose()?;
    let mut found = Vec::new();
    for path in &args.files {
        let told = |error: std::io::Error| format!("{}: {error}", path.display());
        found.push((path, verify(File::open(path).map_err(told)?, &keys, authorities.as_ref()).map_err(told)?));
    }
    let in_chains: BTreeSet<String> =
        found.iter().flat_map(|(_, one)| &one.links).map(|link| link.manifest_sha256.clone()).collect();
    if !in_chains.is_empty() {
        for (_, one) in &mut found {
            match &one.manifest_sha256 {
                Some(hash) if in_chains.contains(hash) => one.holds.push("its manifest is in the chain".to_owned()),
                Some(_) => one.broken.push("its manifest is not in the chain".to_owned()),
                None => {}
            }
        }
    }
    let code = if found.iter().any(|(_, one)| !one.broken.is_empty()) {
        1
    } else if found.iter().any(|(_, one)| !one.is_known) {
        UNKNOWN_KEY
    } else {
        0
    };
    Ok((code, if args.json { vec![json_of(&found, code).to_string()] } else { lines_of(&found) }))
}

fn lines_of(found: &[(&PathBuf, Verified)]) -> Vec<String> {
    let mut lines = Vec::new();
    for (path, one) in found {
        lines.push(path.display().to_string());
        lines.extend(one.holds.iter().map(|line| format!("  holds: {line}")));
        lines.extend(one.broken.iter().map(|line| format!("  BROKEN: {line}")));
        if let Some(Stamped { at, authority, is_known: false }) = &one.stamped {
            lines.push(format!(
                "  stamped at {at} by {authority}, which nothing proves: give the certificates that you know by --timestamp-ca"
            ));
        }
        if let (true, false, Some(key)) = (one.broken.is_empty(), one.is_known, &one.key) {
            lines.push(format!("  signed by an unknown key {key}: give the one that you know by --key"));
        }
    }
    lines
}

fn json_of(found: &[(&PathBuf, Verified)], code: u8) -> Value {
    let one = |(path, one): &(&PathBuf, Verified)| {
        json!({
            "file": path.display().to_string(), "holds": one.holds, "broken": one.broken, "key": one.key,
            "is_known": one.is_known, "manifest_sha256": one.manifest_sha256, "stamped": one.stamped.as_ref().map(stamped_json),
        })
    };
    json!({ "exit_code": code, "files": found.iter().map(one).collect::<Vec<_>>() })
}

fn stamped_json(stamped: &Stamped) -> Value {
    json!({ "at": stamped.at, "authority": stamped.authority, "is_known": stamped.is_known })
}

/// Returns the authorities of a file with certificates.
fn authorities_of(path: &Path) -> Result<Authorities, String> {
    let told = |why: &dyn std::fmt::Display| format!("--timestamp-ca {}: {why}", path.display());
    Authorities::parse(&std::fs::read(path).map_err(|error| told(&error))?).map_err(|why| told(&why))
}

/// Returns the keys of a flag: one in hexadecimal digits, or those in a file of any form.
fn keys_of(given: &str) -> Result<Vec<Vec<u8>>, String> {
    let is_key = |word: &str| word.len() == 2 * KEY_BYTES && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let read = |word: &str| hex::decode(word).map_err(|error| error.to_string());
    if is_key(given) {
        return Ok(vec![read(given)?]);
    }
    if !Path::new(given).is_file() {
        return Err(format!("--key {given:?} is neither a key of {} hexadecimal digits nor a file", 2 * KEY_BYTES));
    }
    let text = std::fs::read_to_string(given).map_err(|error| format!("--key {given}: {error}"))?;
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| is_key(word));
    let keys = words.map(read).collect::<Result<Vec<_>, _>>()?;
    if keys.is_empty() { Err(format!("--key {given}: there is no key in this file")) } else { Ok(keys) }
}
