//! Standard output, which may be gone before the work is done (`ringer call ... | head -2`). That is no panic: nothing
//! more is printed, who works long is told so that it ends in order, and the exit code says it.

use std::fmt::Display;
use std::io::{Error, ErrorKind, Write};
use std::process::ExitCode;
use std::sync::OnceLock;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::fail;

/// Exit code when the output is no longer read, as a shell reports a program that a broken pipe ended.
pub(crate) const NOT_READ: u8 = 141;

/// Standard output of a command, which may be closed early.
pub(crate) struct Out {
    to: Mutex<Box<dyn Write + Send>>,
    lost: OnceLock<Error>,
    gone: CancellationToken,
}

impl Out {
    /// Returns the standard output of this process.
    pub(crate) fn standard() -> Out {
        Out::to(std::io::stdout())
    }

    /// Returns an output that prints to `to`.
    pub(crate) fn to(to: impl Write + Send + 'static) -> Out {
        Out { to: Mutex::new(Box::new(to)), lost: OnceLock::new(), gone: CancellationToken::new() }
    }

    /// Prints a line, unless one could not be printed before.
    pub(crate) fn line(&self, line: impl Display) {
        if self.is_gone() {
            return;
        }
        let mut to = self.to.lock();
        if let Err(error) = writeln!(to, "{line}").and_then(|()| to.flush()) {
            let _ = self.lost.set(error);
            self.gone.cancel();
        }
    }

    /// True if a line could not be printed.
    pub(crate) fn is_gone(&self) -> bool {
        self.lost.get().is_some()
    }

    /// Waits until a line cannot be printed.
    pub(crate) async fn wait_until_closed(&self) {
        self.gone.cancelled().await;
    }

    /// Returns the exit code of a command that is `done`, or printed why not: [`NOT_READ`] when nobody read all of its
    /// lines.
    pub(crate) fn finish(&self, done: Result<(), impl Display>) -> ExitCode {
        match (self.lost.get(), done) {
            (Some(error), _) if error.kind() == ErrorKind::BrokenPipe => ExitCode::from(NOT_READ),
            (Some(error), _) => fail(format!("standard output: {error}")),
            (None, Ok(())) => ExitCode::SUCCESS,
            (None, Err(why)) => fail(why),
        }
    }

    /// Ends the output as [`Out::finish`] does for a command that has printed everything: 0 when it is `good`, else 1.
    pub(crate) fn verdict(&self, good: bool) -> ExitCode {
        match (self.is_gone(), good) {
            (false, false) => ExitCode::FAILURE,
            _ => self.finish(Ok::<(), String>(())),
        }
    }
}

/// Prints a line to standard error, which may be gone too: then there is nobody to tell.
pub fn complain(line: impl Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Output that takes a number of bytes, then fails.
    struct Full(Arc<Mutex<Vec<u8>>>, usize, ErrorKind);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let mut taken = self.0.lock();
            let space = self.1.saturating_sub(taken.len()).min(bytes.len());
            taken.extend_from_slice(&bytes[..space]);
            if space > 0 { Ok(space) } else { Err(self.2.into()) }
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn code(code: ExitCode) -> String {
        format!("{code:?}")
    }

    #[tokio::test]
    async fn a_lost_output_takes_nothing_more_and_changes_the_exit_code() {
        for (kind, expect) in [(ErrorKind::BrokenPipe, NOT_READ), (ErrorKind::StorageFull, 1)] {
            let taken = Arc::new(Mutex::new(Vec::new()));
            let out = Out::to(Full(taken.clone(), 6, kind));
            out.line("first");
            assert!(!out.is_gone());
            assert_eq!(code(out.finish(Ok::<(), String>(()))), code(ExitCode::SUCCESS));
            assert_eq!(code(out.verdict(false)), code(ExitCode::FAILURE));
            out.line("second");
            out.line("third");
            out.wait_until_closed().await;
            assert_eq!(taken.lock().as_slice(), b"first\n");
            assert_eq!(code(out.finish(Ok::<(), String>(()))), code(ExitCode::from(expect)));
            assert_eq!(code(out.finish(Err("the call ended"))), code(ExitCode::from(expect)));
            assert_eq!(code(out.verdict(false)), code(ExitCode::from(expect)));
        }
    }
}
