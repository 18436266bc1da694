//! UDP ports of a peer connection, and the part of one that a media thread reads.
//!
//! The library binds a socket for each address and reads it in a task. When a media thread takes the media over, a
//! second socket joins the one in use on its port, and the kernel tells the datagrams apart by their first byte (RFC
//! 7983 7): media and reports go to the second socket, everything else stays with the task. So a flood of checks never
//! reaches the media thread, and messages of data channels never wait for a tick. Once the second socket is gone, the
//! kernel gives its datagrams to the first one again.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::sync::Notify;
use webrtc::runtime::{
    AsyncInterval, AsyncTcpListener, AsyncTcpStream, AsyncUdpSocket, JoinHandle, RecvMeta, Runtime, TokioRuntime,
    Transmit,
};

use crate::sockets::keep_receive_times;

/// First bytes of RTP and RTCP (RFC 7983 7).
const MEDIA: std::ops::RangeInclusive<u32> = 128..=191;

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The ports of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Ports(Arc<Known>);

#[derive(Debug, Default)]
struct Known {
    sockets: Mutex<Vec<Weak<tokio::net::UdpSocket>>>,
    /// Address of the other side, once media go there past the library.
    far: Mutex<Option<SocketAddr>>,
    /// Told when another address than that is exchanged datagrams with: the path may change.
    stirred: Notify,
}

impl Ports {
    /// Returns a second socket on the port of this address, which gets the media that come there; `None` if the
    /// connection has no such port.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub(super) fn media_socket(&self, here: SocketAddr) -> io::Result<Option<UdpSocket>> {
        let sockets: Vec<_> = self.0.sockets.lock().iter().filter_map(Weak::upgrade).collect();
        let is_it = |socket: &&Arc<tokio::net::UdpSocket>| socket.local_addr().is_ok_and(|address| address == here);
        if !sockets.iter().any(|socket| is_it(&socket)) {
            return Ok(None);
        }
        let second = UdpSocket::from(beside(here)?);
        keep_receive_times(&second)?;
        Ok(Some(second))
    }

    /// Sets the other side's address; datagrams of others end [`Ports::path_change`].
    pub(super) fn expect(&self, far: Option<SocketAddr>) {
        *self.0.far.lock() = far;
    }

    /// Waits until the path may be another.
    pub(super) async fn path_change(&self) {
        self.0.stirred.notified().await;
    }
}

impl Known {
    fn look_at(&self, address: SocketAddr) {
        if self.far.lock().is_some_and(|far| far != address) {
            self.stirred.notify_one();
        }
    }
}

/// Prepares a socket for a second one on its port. It has the option from now on only, since a port that is drawn with
/// it may be one of another socket that has it too.
fn prepare(first: &UdpSocket) -> io::Result<()> {
    let here = first.local_addr()?;
    SockRef::from(first).set_reuse_port(true)?;
    // The kernel makes the group of a port when a second socket joins. The group and its filter stay when that is gone.
    let _second = beside(here)?;
    tell_apart(first)
}

/// Returns another socket on the port of this address.
fn beside(here: SocketAddr) -> io::Result<Socket> {
    let second = Socket::new(Domain::for_address(here), Type::DGRAM, Some(Protocol::UDP))?;
    second.set_reuse_port(true)?;
    second.set_nonblocking(true)?;
    second.bind(&here.into())?;
    Ok(second)
}

/// Tells the kernel how to give datagrams to the sockets of a port: media to number 1, the rest to number 0. A number
/// that no socket has counts as none.
fn tell_apart(first: &impl AsRawFd) -> io::Result<()> {
    let step = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut program = [
        // The first byte of the datagram. For an empty one the program ends here, with number 0.
        step(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 2, *MEDIA.start()),
        step(libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K, 1, 0, *MEDIA.end()),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, 1),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the descriptor is open, and the program that the structure points at outlives the call, which copies it.
    let done = unsafe {
        let (value, size) = ((&raw const filter).cast(), size_of::<libc::sock_fprog>() as libc::socklen_t);
        libc::setsockopt(first.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ATTACH_REUSEPORT_CBPF, value, size)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The library's runtime, with sockets that are known to [`Ports`].
#[derive(Debug)]
pub(super) struct PortRuntime {
    own: TokioRuntime,
    ports: Ports,
}

impl PortRuntime {
    /// Returns a runtime of one connection.
    pub(super) fn new(ports: Ports) -> PortRuntime {
        PortRuntime { own: TokioRuntime, ports }
    }
}

impl Runtime for PortRuntime {
    fn spawn(&self, future: Boxed<'static, ()>) -> Box<dyn JoinHandle> {
        self.own.spawn(future)
    }

    fn spawn_reactor(&self, size: usize, future: Boxed<'static, ()>) -> Box<dyn JoinHandle> {
        self.own.spawn_reactor(size, future)
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        socket.set_nonblocking(true)?;
        // Without it the media stay with the library.
        let prepared = prepare(&socket);
        if let Err(error) = &prepared {
            tracing::debug!(%error, "the kernel cannot tell the media of a port apart");
        }
        let socket = Arc::new(tokio::net::UdpSocket::from_std(socket)?);
        let known = self.ports.0.clone();
        let mut sockets = known.sockets.lock();
        sockets.retain(|socket| socket.strong_count() > 0);
        if prepared.is_ok() {
            sockets.push(Arc::downgrade(&socket));
        }
        drop(sockets);
        Ok(Arc::new(Port { socket, known }))
    }

    fn wrap_tcp_listener(&self, listener: std::net::TcpListener) -> io::Result<Arc<dyn AsyncTcpListener>> {
        self.own.wrap_tcp_listener(listener)
    }

    fn connect_tcp<'a>(&'a self, there: SocketAddr) -> Boxed<'a, io::Result<Arc<dyn AsyncTcpStream>>> {
        self.own.connect_tcp(there)
    }

    fn resolve_host<'a>(&'a self, host: &'a str) -> Boxed<'a, io::Result<Vec<SocketAddr>>> {
        self.own.resolve_host(host)
    }

    fn now(&self) -> Instant {
        self.own.now()
    }

    fn sleep(&self, duration: Duration) -> Boxed<'static, ()> {
        self.own.sleep(duration)
    }

    fn interval(&self, period: Duration) -> Box<dyn AsyncInterval> {
        self.own.interval(period)
    }

    fn block_on(&self, future: Pin<Box<dyn Future<Output = ()> + '_>>) {
        self.own.block_on(future);
    }

    fn yield_now(&self) -> Boxed<'static, ()> {
        self.own.yield_now()
    }

    fn name(&self) -> &'static str {
        self.own.name()
    }
}

/// A socket as the library sees it. It reads one datagram at a time, so that the library keeps buffers of 2 KB for it
/// instead of 128.
#[derive(Debug)]
struct Port {
    socket: Arc<tokio::net::UdpSocket>,
    known: Arc<Known>,
}

impl AsyncUdpSocket for Port {
    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn poll_send(&self, context: &mut Context<'_>, transmit: &Transmit<'_>) -> Poll<io::Result<usize>> {
        self.known.look_at(transmit.destination);
        self.socket.poll_send_to(context, transmit.contents, transmit.destination)
    }

    fn poll_recv(
        &self,
        context: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let (Some(buffer), Some(meta)) = (buffers.first_mut(), meta.first_mut()) else {
            return Poll::Ready(Err(io::ErrorKind::InvalidInput.into()));
        };
        let mut read = tokio::io::ReadBuf::new(buffer);
        let from = std::task::ready!(self.socket.poll_recv_from(context, &mut read))?;
        self.known.look_at(from);
        *meta = RecvMeta::default();
        (meta.addr, meta.len, meta.stride) = (from, read.filled().len(), read.filled().len().max(1));
        Poll::Ready(Ok(1))
    }
}

#[cfg(test)]
mod tests;
