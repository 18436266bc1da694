//! Dependencies that `.ci/with_kept_dependencies` keeps between runs, in a workspace of one package: what is ours is
//! compiled anew.

use std::fs::{self, File, FileTimes};
use std::path::Path;
use std::process::Output;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::timeout;

use crate::program::PATIENCE;

/// Result of the tests of the package `ours`, which wants `seven() == 7` of a library outside of its workspace.
struct Run {
    passed: bool,
    output: String,
}

impl Run {
    fn has_compiled(&self, package: &str) -> bool {
        self.output.contains(&format!("Compiling {package} "))
    }
}

/// Writes a file that is older than everything that was ever compiled of it.
fn write_old(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("it is in a folder")).expect("the folder is writable");
    fs::write(path, text).expect("the folder is writable");
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let file = File::options().write(true).open(path).expect("it was written");
    file.set_times(FileTimes::new().set_modified(old)).expect("it is ours");
}

fn manifest(name: &str, rest: &str) -> String {
    format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n{rest}")
}

/// Makes a clone of the workspace in `folder`, beside the library, and runs its tests with the cache that all clones
/// share.
async fn run(folder: &TempDir, clone: &str, seven: u32) -> Run {
    let root = folder.path().join(clone);
    let dependency = "[workspace]\n[dependencies]\ntheirs = { path = \"../theirs\" }\n";
    write_old(&root.join("Cargo.toml"), &manifest("ours", dependency));
    let library = format!(
        "pub fn seven() -> u32 {{ theirs::one() * {seven} }}\n#[test]\nfn it_is_seven() {{ assert_eq!(seven(), 7); }}\n"
    );
    write_old(&root.join("src/lib.rs"), &library);
    let lock = "version = 4\n[[package]]\nname = \"ours\"\nversion = \"0.1.0\"\ndependencies = [\"theirs\"]\n[[package]]\nname = \"theirs\"\nversion = \"0.1.0\"\n";
    write_old(&root.join("Cargo.lock"), lock);
    let Output { status, stdout, stderr } = timeout(PATIENCE, command(folder, clone).output())
        .await
        .expect("it ends in time")
        .expect("bash is part of every Debian");
    let printed = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
    Run { passed: status.success(), output: printed }
}

fn command(folder: &TempDir, clone: &str) -> Command {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/.ci/with_kept_dependencies");
    let mut command = Command::new(script);
    command.args(["cargo", "test", "--offline"]).current_dir(folder.path().join(clone));
    command.env("RINGER_CI_CACHE", folder.path().join("cache")).env("CARGO_TERM_COLOR", "never").kill_on_drop(true);
    for name in ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR", "CARGO_TERM_QUIET", "RINGER_CI_CACHE_MIB"] {
        command.env_remove(name);
    }
    command
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let theirs = folder.path().join("theirs");
    write_old(&theirs.join("Cargo.toml"), &manifest("theirs", "[workspace]\n"));
    write_old(&theirs.join("src/lib.rs"), "pub fn one() -> u32 { 1 }\n");
    folder
}

#[tokio::test]
async fn a_fault_is_found_directly_after_a_green_run() {
    let folder = folder();
    let first = run(&folder, "first", 7).await;
    assert!(first.passed && first.has_compiled("ours") && first.has_compiled("theirs"), "{}", first.output);
    // Another commit in another place, and in the same place: files with the same times.
    for clone in ["second", "first"] {
        let faulty = run(&folder, clone, 8).await;
        assert!(!faulty.passed && faulty.output.contains("it_is_seven ... FAILED"), "{clone}: {}", faulty.output);
        assert!(faulty.has_compiled("ours") && !faulty.has_compiled("theirs"), "{clone}: {}", faulty.output);
    }
    let mended = run(&folder, "first", 7).await;
    assert!(mended.passed && !mended.has_compiled("theirs"), "{}", mended.output);
    assert!(!folder.path().join("first/target").exists(), "what is compiled lies in the cache");
}

#[tokio::test]
async fn a_cache_in_use_or_out_of_reach_leaves_the_clones_own_folder() {
    let folder = folder();
    let cache = folder.path().join("cache");
    fs::create_dir(&cache).expect("the folder is writable");
    let lock = File::create(cache.join("lock")).expect("the folder is writable");
    lock.lock().expect("nobody else has it");
    let busy = run(&folder, "busy", 7).await;
    assert!(busy.passed && busy.output.contains("another run uses"), "{}", busy.output);
    drop(lock);
    fs::remove_dir_all(&cache).expect("it is ours");
    fs::write(&cache, "no folder").expect("the folder is writable");
    let without = run(&folder, "without", 7).await;
    assert!(without.passed && without.output.contains("cannot be made"), "{}", without.output);
    assert!(folder.path().join("busy/target").exists() && folder.path().join("without/target").exists());
}

#[tokio::test]
async fn caches_of_other_lock_files_go_when_there_is_too_much() {
    let folder = folder();
    let other = folder.path().join("cache/other");
    fs::create_dir_all(&other).expect("the folder is writable");
    fs::write(other.join("large"), vec![1; 3 << 20]).expect("the folder is writable");
    let kept = run(&folder, "first", 7).await;
    assert!(kept.passed && other.exists(), "{}", kept.output);
    let mut small = command(&folder, "first");
    let said = timeout(PATIENCE, small.env("RINGER_CI_CACHE_MIB", "2").output()).await.expect("in time").expect("bash");
    assert!(said.status.success() && !other.exists(), "{}", String::from_utf8_lossy(&said.stderr));
}
