//! `[mcp]`: what coding assistants may do at `/mcp`.

use serde::Serialize;

use super::Source;

/// Settings of the section `[mcp]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Mcp {
    /// True if assistants may call telephone numbers.
    pub allow_trunks: bool,
}

impl Mcp {
    pub(super) fn read(&mut self, from: &mut Source) {
        from.boolean("mcp.allow_trunks", &mut self.allow_trunks);
    }
}
