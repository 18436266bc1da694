//! Tools that `make peers` installs beside the build: a checker of types, and one of accessibility.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The checker of accessibility, in the folder of the tools.
pub(crate) const AXE: &str = "node_modules/axe-core/axe.min.js";

/// Returns the folder of the tools: `page-tools` in the target folder.
pub(crate) fn tools() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_ringer"));
    program.ancestors().nth(2).expect("the target folder").join("page-tools")
}

#[test]
fn the_modules_of_the_page_keep_their_types() {
    let checker = tools().join("node_modules/typescript/bin/tsc");
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/page/tsconfig.json");
    let checked = Command::new("node").arg(&checker).args(["-p", config]).output();
    let checked = checked.unwrap_or_else(|error| panic!("node: {error}; `make peers` installs it"));
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{}: {said}; `make peers` installs it", checker.display());
}
