//! A relay of datagrams between two peers that can be cut.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket as StdSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::net::UdpSocket;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A relay in front of the peer that made an offer.
pub(super) struct Relay {
    front: SocketAddr,
    target: watch::Sender<Option<SocketAddr>>,
    is_cut: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Relay {
    pub(super) async fn start() -> Relay {
        let bound = || {
            let socket = StdSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has a free port");
            socket.set_nonblocking(true).expect("it is a socket");
            UdpSocket::from_std(socket).expect("it is a socket")
        };
        let (front, back) = (bound(), bound());
        let address = front.local_addr().expect("it is bound");
        let (target, targets) = watch::channel(None::<SocketAddr>);
        let is_cut = Arc::<AtomicBool>::default();
        let cut = is_cut.clone();
        let passes = async move {
            let (mut there, mut here) = ([0; 2048], [0; 2048]);
            let mut source = None;
            loop {
                tokio::select! {
                    Ok((len, from)) = front.recv_from(&mut there) => {
                        source = Some(from);
                        let target = *targets.borrow();
                        if let Some(target) = target.filter(|_| !cut.load(Ordering::Relaxed)) {
                            let _ = back.send_to(&there[..len], target).await;
                        }
                    }
                    Ok((len, _)) = back.recv_from(&mut here) => {
                        if let Some(source) = source.filter(|_| !cut.load(Ordering::Relaxed)) {
                            let _ = front.send_to(&here[..len], source).await;
                        }
                    }
                }
            }
        };
        #[expect(clippy::disallowed_methods, reason = "it ends with the test")]
        let task = tokio::spawn(passes);
        Relay { front: address, target, is_cut, task }
    }

    /// Returns the description with the relay's address in place of its own first one.
    pub(super) fn through(&self, sdp: &str) -> String {
        let line = sdp.lines().find(|line| line.starts_with("a=candidate:")).expect("a candidate");
        let fields: Vec<&str> = line.split(' ').collect();
        let target = format!("{}:{}", fields[4], fields[5]).parse().expect("an address");
        self.target.send_replace(Some(target));
        let own = format!("a=candidate:1 1 udp 2130706431 {} {} typ host\r\n", self.front.ip(), self.front.port());
        without_candidates(sdp).replacen("a=ice-ufrag", &format!("{own}a=ice-ufrag"), 1)
    }

    /// Stops all traffic from now on.
    pub(super) fn cut_off(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
    }

    /// Lets traffic pass again, for those whose next description goes through the relay.
    pub(super) fn mend(&self) {
        self.is_cut.store(false, Ordering::Relaxed);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns the description without candidates.
pub(super) fn without_candidates(sdp: &str) -> String {
    let kept = sdp.lines().filter(|line| !line.starts_with("a=candidate:") && *line != "a=end-of-candidates");
    kept.map(|line| format!("{line}\r\n")).collect()
}
