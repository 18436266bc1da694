//! An eventfd by which a media thread wakes the task that reads its messages: one write a tick at most.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// A wake-up signal between one thread and one task.
#[derive(Debug)]
pub(super) struct Wake {
    fd: OwnedFd,
    marked: AtomicBool,
}

impl Wake {
    pub(crate) fn new() -> io::Result<Wake> {
        // SAFETY: eventfd takes plain values; its result is checked before it is owned.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` was just made and nobody else has it.
        Ok(Wake { fd: unsafe { OwnedFd::from_raw_fd(fd) }, marked: AtomicBool::new(false) })
    }

    /// Notes that there is something to read.
    pub(crate) fn mark(&self) {
        self.marked.store(true, Ordering::Release);
    }

    /// Wakes the reader when something was marked since the last time.
    pub(crate) fn ring_if_needed(&self) {
        if self.marked.swap(false, Ordering::AcqRel) {
            let one: u64 = 1;
            // SAFETY: writes 8 bytes of a u64 that outlives the call; a full counter means that the reader is awake
            // anyway.
            unsafe { libc::write(self.fd.as_raw_fd(), (&raw const one).cast(), 8) };
        }
    }

    /// Takes the count back to zero.
    pub(crate) fn clear(&self) {
        let mut count: u64 = 0;
        // SAFETY: reads 8 bytes into a u64 that outlives the call; an empty counter answers EAGAIN.
        unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut count).cast(), 8) };
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for Wake {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}
