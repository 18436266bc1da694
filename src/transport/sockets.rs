//! Media sockets: non-blocking UDP with kernel receive times, read in batches. Used by media threads, so nothing here
//! allocates after its making.
//!
//! A packet is one system call. Send and recvmmsg take 5.4 to 6.2 us for a packet each way, io_uring 5.2 to 8.6 (200
//! sockets). Sockets are connected: the kernel then refuses other senders, and a send costs less. Kept ICMP errors tell
//! of an unreachable address at once instead of after 32 s.

use std::io;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::ops::RangeInclusive;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, Ordering};

use ringer_base::config::SymmetricRtp;
use ringer_media::time::Time;

use super::strangers::Strangers;

/// Datagrams read by one system call.
const BATCH: usize = 8;
/// Longest datagram that is looked at; RTP audio is far shorter.
const DATAGRAM_BYTES: usize = 2048;
/// Space for one timestamp control message.
const CONTROL_BYTES: usize = 64;

/// The RTP and RTCP sockets of one leg.
#[derive(Debug)]
pub struct MediaSockets {
    rtp: UdpSocket,
    rtcp: UdpSocket,
    port: u16,
    /// Present from the first [`MediaSockets::connect`] on.
    strangers: Option<Strangers>,
    /// True if RTP has come from the agreed address since the last look at strangers.
    is_heard: bool,
    /// True if reports leave from the port of RTP (RFC 5761).
    is_shared: bool,
}

/// An address that sends RTP and is not the agreed one.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Stranger {
    /// The call's RTP goes there, and is taken from there, from now on.
    Taken(SocketAddr),
    /// Its RTP is not heard.
    Ignored(SocketAddr),
}

/// Hands out port pairs.
#[derive(Debug)]
pub struct MediaPorts {
    range: RangeInclusive<u16>,
    next: AtomicU32,
}

impl MediaPorts {
    /// Returns the even ports of `range` for RTP, and the odd ones after them for RTCP.
    pub fn new(range: RangeInclusive<u16>) -> MediaPorts {
        MediaPorts { range, next: AtomicU32::new(0) }
    }

    /// Pairs in the range.
    pub fn pairs(&self) -> usize {
        let (first, last) = (u32::from(*self.range.start()).next_multiple_of(2), u32::from(*self.range.end()));
        ((last + 1).saturating_sub(first) / 2) as usize
    }

    /// Binds the next free pair at `host`.
    ///
    /// # Errors
    /// The last bind error when no pair of the range is free.
    pub fn bind(&self, host: IpAddr) -> io::Result<MediaSockets> {
        let first = u32::from(*self.range.start()).next_multiple_of(2);
        let pairs = self.pairs() as u32;
        let mut refused = io::Error::new(io::ErrorKind::AddrInUse, "the RTP port range has no even port");
        for _ in 0..pairs {
            let at = self.next.fetch_add(1, Ordering::Relaxed) % pairs;
            let port = (first + 2 * at) as u16;
            match MediaSockets::bind(host, port) {
                Ok(sockets) => return Ok(sockets),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }
}

impl MediaSockets {
    fn bind(host: IpAddr, port: u16) -> io::Result<MediaSockets> {
        let rtp = UdpSocket::bind((host, port))?;
        let rtcp = UdpSocket::bind((host, port + 1))?;
        for socket in [&rtp, &rtcp] {
            socket.set_nonblocking(true)?;
        }
        keep_receive_times(&rtp)?;
        Ok(MediaSockets { rtp, rtcp, port, strangers: None, is_heard: false, is_shared: false })
    }

    /// Returns the addresses on which RTP and RTCP are received.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn addresses(&self) -> io::Result<[SocketAddr; 2]> {
        Ok([self.rtp.local_addr()?, self.rtcp.local_addr()?])
    }

    /// Returns the RTP port; RTCP is one above.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Connects the sockets: datagrams go to, and are only taken from, these addresses. If both are the same, RTP and
    /// RTCP share one port here too.
    ///
    /// # Errors
    /// The kernel's refusal, for example of a family that the sockets do not have.
    pub fn connect(&mut self, rtp: SocketAddr, rtcp: SocketAddr) -> io::Result<()> {
        self.rtp.connect(rtp)?;
        if self.strangers.is_none() {
            self.strangers = Strangers::beside(&self.rtp).ok();
        }
        self.is_shared = rtp == rtcp;
        self.rtcp.connect(rtcp)
    }

    /// Takes what has come to the RTP port from other addresses, to be called now and then. An address whose RTP is
    /// believed and that the rule has is taken while nothing comes from the agreed one. One that is not taken is
    /// returned once.
    pub fn look_at_strangers(&mut self, rule: SymmetricRtp) -> Option<Stranger> {
        let was_heard = std::mem::take(&mut self.is_heard);
        let strangers = self.strangers.as_mut()?;
        strangers.look();
        let found = strangers.trusted_address()?;
        let agreed = self.rtp.peer_addr().ok()?;
        if found == agreed {
            return None;
        }
        let is_covered = match rule {
            SymmetricRtp::Off => false,
            SymmetricRtp::On => found.ip() == agreed.ip(),
            SymmetricRtp::Any => true,
        };
        if !is_covered {
            return strangers.tell_once().then_some(Stranger::Ignored(found));
        }
        if was_heard {
            return None;
        }
        self.rtp.connect(found).ok()?;
        // Reports come from one port above, as far as is known (RFC 3550 11).
        let _ = self.rtcp.connect(SocketAddr::new(found.ip(), found.port().saturating_add(1)));
        Some(Stranger::Taken(found))
    }

    /// Returns the number of datagrams that came to the RTP port from other addresses.
    pub fn foreign_datagrams(&self) -> u64 {
        self.strangers.as_ref().map_or(0, Strangers::count)
    }

    /// Sends media; a full buffer or an unreachable far side is a lost packet.
    pub fn send_rtp(&self, bytes: &[u8]) {
        send(&self.rtp, bytes);
    }

    /// Sends media from a socket that is not connected.
    pub fn send_rtp_to(&self, to: SocketAddr, bytes: &[u8]) {
        let _ = self.rtp.send_to(bytes, to);
    }

    /// Sends one RTCP packet.
    pub fn send_rtcp(&self, bytes: &[u8]) {
        send(if self.is_shared { &self.rtp } else { &self.rtcp }, bytes);
    }

    /// Reads what has arrived, at most a batch; call again while it gives a full one.
    pub fn receive_rtp<'a>(&mut self, batch: &'a mut Batch) -> impl Iterator<Item = (u64, &'a [u8])> + use<'a> {
        batch.read_clock(self.rtp.as_raw_fd());
        self.is_heard |= batch.count > 0;
        batch.messages()
    }

    /// Reads one RTCP packet; `None` if there is none.
    pub fn receive_rtcp<'a>(&self, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
        self.rtcp.recv(buffer).ok().map(|len| &buffer[..len])
    }
}

fn send(socket: &UdpSocket, bytes: &[u8]) {
    // A refused port reports itself on the next send; that send then failed for an older packet, so it is tried once
    // more.
    if socket.send(bytes).is_err() {
        let _ = socket.send(bytes);
    }
}

fn set(socket: libc::c_int, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the descriptor is open for the whole call and `value` is a c_int of the size given.
    let done = unsafe {
        let size = size_of::<libc::c_int>() as libc::socklen_t;
        libc::setsockopt(socket, level, option, (&raw const value).cast(), size)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Asks the kernel to keep the time at which each datagram comes, which [`Batch`] reads.
///
/// # Errors
/// The kernel's refusal.
pub(crate) fn keep_receive_times(socket: &UdpSocket) -> io::Result<()> {
    set(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
}

/// Returns the local address from which `to` is reached. Sends nothing.
///
/// # Errors
/// No route.
pub fn address_towards(to: SocketAddr) -> io::Result<IpAddr> {
    let any: IpAddr = if to.is_ipv4() { [0, 0, 0, 0].into() } else { [0u16; 8].into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(to)?;
    Ok(socket.local_addr()?.ip())
}

/// Asks the kernel to keep what routers and hosts say of datagrams that could not be delivered (RFC 1122 4.1.3.3).
///
/// # Errors
/// The kernel's refusal.
pub fn keep_errors(socket: &impl AsRawFd, v6: bool) -> io::Result<()> {
    let (level, option) =
        if v6 { (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) } else { (libc::IPPROTO_IP, libc::IP_RECVERR) };
    set(socket.as_raw_fd(), level, option, 1)
}

/// Returns the next address of which [`keep_errors`] kept an error; `None` when there is none left.
pub fn next_undelivered(socket: &impl AsRawFd) -> Option<SocketAddr> {
    // SAFETY: all three are plain C structs for which all zeroes are valid.
    let (mut header, mut name, mut part): (libc::msghdr, libc::sockaddr_storage, libc::iovec) = unsafe { zeroed() };
    let (mut data, mut control) = ([0u8; 1], [0u8; 512]);
    part.iov_base = data.as_mut_ptr().cast();
    part.iov_len = data.len();
    header.msg_name = (&raw mut name).cast();
    header.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = control.len() as _;
    // SAFETY: the header points at buffers of this frame that outlive the call, with their true sizes.
    let got = unsafe { libc::recvmsg(socket.as_raw_fd(), &mut header, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) };
    if got < 0 { None } else { address(&name) }
}

fn address(name: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match libc::c_int::from(name.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says that the storage holds a sockaddr_in, which it is large enough and aligned for.
            let name = unsafe { &*(&raw const *name).cast::<libc::sockaddr_in>() };
            let host = std::net::Ipv4Addr::from(u32::from_be(name.sin_addr.s_addr));
            Some((host, u16::from_be(name.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above, for sockaddr_in6.
            let name = unsafe { &*(&raw const *name).cast::<libc::sockaddr_in6>() };
            Some((std::net::Ipv6Addr::from(name.sin6_addr.s6_addr), u16::from_be(name.sin6_port)).into())
        }
        _ => None,
    }
}

/// Buffers for reading several datagrams with their kernel receive times.
pub struct Batch {
    data: Box<[[u8; DATAGRAM_BYTES]; BATCH]>,
    control: Box<[Control; BATCH]>,
    received: [(u64, usize); BATCH],
    count: usize,
}

#[repr(C, align(8))]
#[derive(Copy, Clone)]
struct Control([u8; CONTROL_BYTES]);

impl Default for Batch {
    fn default() -> Self {
        Batch {
            data: Box::new([[0; DATAGRAM_BYTES]; BATCH]),
            control: Box::new([Control([0; CONTROL_BYTES]); BATCH]),
            received: [(0, 0); BATCH],
            count: 0,
        }
    }
}

impl Batch {
    /// True when the last read filled it, so that more may wait.
    pub fn is_full(&self) -> bool {
        self.count == BATCH
    }

    /// Reads what has come to a socket, at most a batch. Returns the number of datagrams.
    pub(crate) fn fill_from(&mut self, socket: &UdpSocket) -> usize {
        self.read_clock(socket.as_raw_fd());
        self.count
    }

    /// Returns the kernel time and the bytes of a datagram of the last read.
    pub fn message(&self, at: usize) -> (u64, &[u8]) {
        let (time, len) = self.received[at];
        (time, &self.data[at][..len.min(DATAGRAM_BYTES)])
    }

    fn read_clock(&mut self, fd: libc::c_int) {
        self.count = 0;
        // SAFETY: mmsghdr and iovec are plain C structs for which all zeroes are valid.
        let (mut headers, mut parts): ([libc::mmsghdr; BATCH], [libc::iovec; BATCH]) = unsafe { (zeroed(), zeroed()) };
        for at in 0..BATCH {
            parts[at].iov_base = self.data[at].as_mut_ptr().cast();
            parts[at].iov_len = DATAGRAM_BYTES;
            headers[at].msg_hdr.msg_iov = &raw mut parts[at];
            headers[at].msg_hdr.msg_iovlen = 1;
            headers[at].msg_hdr.msg_control = self.control[at].0.as_mut_ptr().cast();
            headers[at].msg_hdr.msg_controllen = CONTROL_BYTES as _;
        }
        // SAFETY: every header points at buffers of `self` and of this frame that outlive the call, with their true
        // sizes.
        let got = unsafe {
            libc::recvmmsg(fd, headers.as_mut_ptr(), BATCH as _, libc::MSG_DONTWAIT as _, std::ptr::null_mut())
        };
        self.count = usize::try_from(got).unwrap_or(0);
        for (at, header) in headers.iter().enumerate().take(self.count) {
            self.received[at] = (kernel_time_ns(&header.msg_hdr), header.msg_len as usize);
        }
    }

    fn messages(&self) -> impl Iterator<Item = (u64, &[u8])> {
        (0..self.count).map(|at| self.message(at))
    }
}

/// Returns CLOCK_REALTIME of the receipt, in nanoseconds; 0 when the kernel gave none.
fn kernel_time_ns(header: &libc::msghdr) -> u64 {
    // SAFETY: the kernel filled the control buffer that the header points at and set its length; the CMSG functions
    // stay inside that length, and a SCM_TIMESTAMPNS message carries a timespec, which is read unaligned.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while !message.is_null() {
            if (*message).cmsg_level == libc::SOL_SOCKET && (*message).cmsg_type == libc::SCM_TIMESTAMPNS {
                let at: libc::timespec = std::ptr::read_unaligned(libc::CMSG_DATA(message).cast());
                return at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64;
            }
            message = libc::CMSG_NXTHDR(header, message);
        }
    }
    0
}

/// Moves kernel receive times onto the monotonic clock; the offset is read again each second.
#[derive(Debug)]
pub struct KernelClock {
    offset_ns: i128,
    read_at: Time,
}

impl KernelClock {
    /// Reads the offset between both clocks.
    pub fn new() -> KernelClock {
        KernelClock { offset_ns: offset_ns(), read_at: ringer_base::clock::monotonic() }
    }

    /// Reads both clocks again when a second has passed.
    pub fn refresh(&mut self, now: Time) {
        if now.since(self.read_at).as_secs() >= 1 {
            *self = KernelClock { offset_ns: offset_ns(), read_at: now };
        }
    }

    /// Nanoseconds since 1970 of a monotonic time.
    pub fn wall_ns(&self, at: Time) -> u64 {
        (i128::from(at.0) + self.offset_ns).max(0) as u64
    }

    /// Returns a kernel time as monotonic time, never later than `now`; `now` when the kernel gave none.
    pub fn arrival(&self, kernel_ns: u64, now: Time) -> Time {
        if kernel_ns == 0 {
            return now;
        }
        let at = (i128::from(kernel_ns) - self.offset_ns).clamp(0, i128::from(now.0));
        Time(at as u64)
    }
}

impl Default for KernelClock {
    fn default() -> Self {
        KernelClock::new()
    }
}

fn offset_ns() -> i128 {
    let before = ringer_base::clock::monotonic().0;
    let wall = ringer_base::clock::realtime_ns();
    let after = ringer_base::clock::monotonic().0;
    i128::from(wall) - i128::from(before.midpoint(after))
}
