//! Other people's SIP programs as the other side of a test: sipp, baresip and Kamailio, each a child process on
//! loopback with ports of its own, awaited by what it says or does, never by a while, and killed with the test.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tempfile::TempDir;

use self::registrar::{PASSWORD, USER};

mod kamailio;
pub(crate) mod python;
pub(crate) mod registrar;
mod starts;

/// No peer lives longer, whatever happens to the test.
const LIFE_S: u32 = 120;
/// Time limit of one condition on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Distance of two looks at a thing that does not tell when it changes.
const LOOK: Duration = Duration::from_millis(10);
/// Ports of peers: below those that the system and the engine give out.
const PORTS: std::ops::Range<u16> = 10_000..19_000;
/// SIP and four for media.
const PORTS_PER_PEER: u16 = 8;
/// Distance of the port at which baresip takes orders from its SIP port.
const CONTROL: u16 = PORTS_PER_PEER - 1;
/// Most bytes kept of a peer's output.
const OUTPUT_BYTES: usize = 256 * 1024;

/// Frequency of the tone that [`Peer::baresip`] sends, for as long as the call lasts.
pub(crate) const TONE_HZ: u32 = 1000;

/// A running program of the other side.
pub(crate) struct Peer {
    name: String,
    child: Child,
    output: Arc<Output>,
    folder: TempDir,
    /// Address on which it listens for SIP.
    pub sip: SocketAddr,
}

#[derive(Default)]
struct Output {
    said: Mutex<Said>,
    changed: Condvar,
}

#[derive(Default)]
struct Said {
    text: String,
    open_streams: u32,
}

impl Peer {
    /// Starts sipp, which answers `calls` calls with PCMU, sends back the RTP that it gets, and then ends.
    pub(crate) fn answering(calls: u32) -> Peer {
        Peer::sipp("answer", &["-sf", &fixture("answer"), "-rtp_echo", "-m", &calls.to_string()])
    }

    /// Returns the same over TCP.
    pub(crate) fn answering_over_tcp(calls: u32) -> Peer {
        Peer::sipp("answer", &["-t", "t1", "-sf", &fixture("answer"), "-rtp_echo", "-m", &calls.to_string()])
    }

    /// Starts sipp, which calls `to` over TCP by `fixtures/sip/NAME.xml`; the RTP goes to `rtp` on 127.0.0.1.
    pub(crate) fn calling_over_tcp(name: &str, to: SocketAddr, rtp: u16) -> Peer {
        let (to, rtp) = (to.to_string(), rtp.to_string());
        Peer::sipp(name, &["-t", "t1", "-sf", &fixture(name), &to, "-m", "1", "-s", "bob", "-key", "rtp_port", &rtp])
    }

    /// Starts sipp, which takes one call by `fixtures/sip/NAME.xml`, with RTP echo, and then ends.
    pub(crate) fn scenario(name: &str) -> Peer {
        Peer::sipp(name, &["-sf", &fixture(name), "-rtp_echo", "-m", "1"])
    }

    /// Returns the same, where `[KEY]` in the scenario stands for a value.
    pub(crate) fn scenario_with(name: &str, key: &str, value: &str) -> Peer {
        Peer::sipp(name, &["-sf", &fixture(name), "-rtp_echo", "-m", "1", "-key", key, value])
    }

    /// Returns the same, which refers the call to `target`.
    pub(crate) fn referring(name: &str, target: SocketAddr) -> Peer {
        let target = format!("sip:bob@{target}");
        Peer::sipp(name, &["-sf", &fixture(name), "-rtp_echo", "-m", "1", "-key", "refer_to", &target])
    }

    /// Starts sipp, which calls `to` by `fixtures/sip/NAME.xml` as user `ringer` with `password`; the RTP goes to `rtp`
    /// on 127.0.0.1.
    pub(crate) fn calling(name: &str, to: SocketAddr, password: &str, rtp: u16) -> Peer {
        Peer::calling_user(name, "bob", to, password, rtp)
    }

    /// Returns the same to another user than `bob`.
    pub(crate) fn calling_user(name: &str, user: &str, to: SocketAddr, password: &str, rtp: u16) -> Peer {
        let (to, rtp) = (to.to_string(), rtp.to_string());
        let who = ["-s", user, "-au", "ringer", "-ap", password, "-key", "rtp_port", &rtp];
        Peer::sipp(name, &[&["-sf", &fixture(name), &to, "-m", "1"], &who[..]].concat())
    }

    /// Starts sipp, which takes at most so many text messages; what each held is logged.
    pub(crate) fn taking_texts(most: u32) -> Peer {
        Peer::sipp("text", &["-sf", &fixture("text"), "-m", &most.to_string()])
    }

    /// Starts sipp, which sends one text message to `user` at `to`.
    pub(crate) fn texting(words: &str, user: &str, to: SocketAddr) -> Peer {
        let to = to.to_string();
        Peer::sipp("texting", &["-sf", &fixture("texting"), &to, "-m", "1", "-s", user, "-key", "words", words])
    }

    fn sipp(name: &str, how: &[&str]) -> Peer {
        let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
        let first = free_ports();
        let (sip, media) = (first.to_string(), (first + 2).to_string());
        let mut command = with_limit("sipp");
        command.args(how).args(["-i", "127.0.0.1", "-mi", "127.0.0.1", "-p", &sip, "-mp", &media, "-nostdin"]);
        command.args(["-trace_logs", "-log_file", "log", "-trace_err", "-error_file", "errors"]);
        let peer = Peer::start(&format!("sipp {name}"), command, folder, first);
        let listens = peer.comes_true(|| listens(first) || peer.has_ended());
        assert!(listens, "{} does not listen\n{}", peer.name, peer.report());
        peer
    }

    /// Starts baresip, which answers every call at once as `bob`, with this codec (`PCMU/8000/1`), and sends a tone of
    /// [`TONE_HZ`]; what it hears is kept in [`Peer::heard`].
    pub(crate) fn baresip(codec: &str) -> Peer {
        Softphone { codec, ..Softphone::default() }.answering()
    }

    /// Returns the same, which calls `to` as soon as it runs.
    pub(crate) fn calling_baresip(codec: &str, to: &str) -> Peer {
        Softphone { codec, ..Softphone::default() }.calling(to)
    }

    /// Returns the same with PCMU over secure RTP, as [`Softphone::keys`] tells.
    pub(crate) fn secure_baresip(keys: &str) -> Peer {
        Softphone { keys, ..Softphone::default() }.answering()
    }

    /// Returns the same that calls `to` at once.
    pub(crate) fn calling_securely(keys: &str, to: SocketAddr) -> Peer {
        Softphone { keys, ..Softphone::default() }.calling(&format!("sip:ringer@{to}"))
    }

    /// Address of baresip's `bob` over UDP, TCP or TLS.
    pub(crate) fn uri(&self, transport: &str) -> String {
        let port = self.sip.port() + u16::from(transport == "TLS");
        format!("sip:bob@127.0.0.1:{port};transport={}", transport.to_lowercase())
    }

    fn start(name: &str, mut command: Command, folder: TempDir, port: u16) -> Peer {
        command.current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.process_group(0).spawn().expect("timeout(1) is part of every Linux");
        let output = Arc::new(Output::default());
        output.said.lock().open_streams = 2;
        let stdout = child.stdout.take().expect("stdout was piped");
        let stderr = child.stderr.take().expect("stderr was piped");
        listen(stdout, &output);
        listen(stderr, &output);
        Peer { name: name.to_owned(), child, output, folder, sip: SocketAddr::from((Ipv4Addr::LOCALHOST, port)) }
    }

    /// Tells baresip to do something with its call: `hold`, `resume`, `hangup`.
    pub(crate) fn command(&self, name: &str) {
        let order = format!("{{\"command\":\"{name}\",\"token\":\"test\"}}");
        let mut stream = TcpStream::connect(("127.0.0.1", self.sip.port() + CONTROL)).expect("baresip takes orders");
        write!(stream, "{}:{order},", order.len()).expect("baresip reads");
        self.wait_for(&format!("cmd='{name}'"));
    }

    /// Returns everything that it has printed (the last of it, when it is much).
    pub(crate) fn output(&self) -> String {
        self.output.said.lock().text.clone()
    }

    /// Returns the log of its scenario so far.
    pub(crate) fn log(&self) -> String {
        self.file("log")
    }

    /// Returns the recording of what it has heard (baresip, after the call): a WAV file.
    pub(crate) fn heard_file(&self) -> Option<PathBuf> {
        let files = fs::read_dir(self.folder.path()).ok()?.flatten();
        files.map(|entry| entry.path()).find(|path| path.to_string_lossy().ends_with("-dec.wav"))
    }

    /// Waits until it has printed `text`.
    pub(crate) fn wait_for(&self, text: &str) {
        let mut said = self.output.said.lock();
        let waiting = |said: &mut Said| !said.text.contains(text) && said.open_streams > 0;
        self.output.changed.wait_while_for(&mut said, waiting, PATIENCE);
        let found = said.text.contains(text);
        drop(said);
        assert!(found, "{} never said {text:?}\n{}", self.name, self.report());
    }

    /// Waits until its scenario has logged `text`.
    pub(crate) fn wait_for_log(&self, text: &str) {
        let is_there = self.comes_true(|| self.log().contains(text) || self.has_ended());
        assert!(is_there && self.log().contains(text), "{} never logged {text:?}\n{}", self.name, self.report());
    }

    /// Waits until it has ended by itself, with success, and gives what its scenario has logged.
    pub(crate) fn end(mut self) -> String {
        let waiting = |said: &mut Said| said.open_streams > 0;
        self.output.changed.wait_while_for(&mut self.output.said.lock(), waiting, PATIENCE);
        assert!(self.has_ended(), "{} does not end\n{}", self.name, self.report());
        let status = self.child.wait().expect("it is our child");
        assert!(status.success(), "{}: {status}\n{}", self.name, self.report());
        self.log()
    }

    fn has_ended(&self) -> bool {
        self.output.said.lock().open_streams == 0
    }

    /// True if `holds` becomes true in time.
    fn comes_true(&self, holds: impl Fn() -> bool) -> bool {
        let looks = PATIENCE.as_millis() / LOOK.as_millis();
        (0..looks).any(|_| {
            self.output.changed.wait_for(&mut self.output.said.lock(), LOOK);
            holds()
        })
    }

    fn file(&self, name: &str) -> String {
        fs::read(self.folder.path().join(name))
            .map_or_else(|_| String::new(), |bytes| String::from_utf8_lossy(&bytes).into())
    }

    fn report(&self) -> String {
        format!("output: {}\nlog: {}\nerrors: {}", self.output(), self.log(), self.file("errors"))
    }
}

/// Settings of one baresip, before it starts.
pub(crate) struct Softphone<'a> {
    /// Codec, rate and channels: `PCMU/8000/1`.
    pub codec: &'a str,
    /// Keys of its media: none, those in SDP, or those of a handshake (`dtls_srtp`). `srtp` takes and offers keys in
    /// SDP beside plain RTP; `srtp-mand` takes nothing else.
    pub keys: &'a str,
    /// UDP, TCP or TLS, of the calls that it makes.
    pub transport: &'a str,
    /// Folder with its certificate `own.pem`, the key `own.key` and its authority `ca.pem`; with it baresip listens for
    /// TLS, at the port after that of the others.
    pub certificates: Option<&'a Path>,
    /// Registrar that it registers with, as [`registrar::USER`]; none by default.
    pub registrar: Option<SocketAddr>,
}

impl Default for Softphone<'_> {
    fn default() -> Self {
        Softphone { codec: "PCMU/8000/1", keys: "", transport: "UDP", certificates: None, registrar: None }
    }
}

impl Softphone<'_> {
    /// Starts baresip, which answers every call at once.
    pub(crate) fn answering(&self) -> Peer {
        self.start(None)
    }

    /// Returns the same, which calls `to` as soon as it runs.
    pub(crate) fn calling(&self, to: &str) -> Peer {
        self.start(Some(to))
    }

    fn start(&self, dials: Option<&str>) -> Peer {
        let rate = self.codec.split('/').nth(1).and_then(|rate| rate.parse().ok());
        let rate_hz = rate.expect("a codec is told with its rate");
        let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
        let first = free_ports();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("tone.wav"), tone(rate_hz)).expect("the folder is writable");
        let keys = if self.keys.is_empty() { String::new() } else { format!(";mediaenc={}", self.keys) };
        let (codec, transport) = (self.codec, self.transport.to_lowercase());
        let (place, registers) = match self.registrar {
            None => ("bob@127.0.0.1".to_owned(), "regint=0".to_owned()),
            Some(at) => (format!("{USER}@{at}"), format!("auth_pass={PASSWORD};regint=60")),
        };
        let account =
            format!("<sip:{place};transport={transport}>;{registers};answermode=auto;audio_codecs={codec}{keys}\n");
        let mut config = baresip_config(folder.path(), first, rate_hz);
        if let Some(certificates) = self.certificates {
            let read = |name: &str| fs::read_to_string(certificates.join(name)).expect("it is there");
            fs::write(path("own.pem"), read("own.pem") + &read("own.key")).expect("the folder is writable");
            let (own, authority) = (path("own.pem"), certificates.join("ca.pem"));
            config += &format!("sip_certificate {}\nsip_cafile {}\n", own.display(), authority.display());
        }
        fs::write(path("accounts"), account)
            .and_then(|()| fs::write(path("contacts"), ""))
            .and_then(|()| fs::write(path("config"), config))
            .expect("the folder is writable");
        let mut command = with_limit("baresip");
        command.args(["-4", "-v", "-f"]).arg(folder.path());
        if let Some(to) = dials {
            command.args(["-e", &format!("/dial {to}")]);
        }
        let peer = Peer::start("baresip", command, folder, first);
        peer.wait_for("baresip is ready");
        peer
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            // SAFETY: signals the process group that this peer leads; it is not reaped yet, so its number is still its
            // own.
            unsafe { libc::kill(-(self.child.id() as libc::pid_t), libc::SIGKILL) };
            let _ = self.child.wait();
            // The program that timeout(1) ran is not our child: its socket is the last that it leaves.
            self.comes_true(|| !listens(self.sip.port()));
        }
    }
}

/// Returns `program`, ended by timeout(1) when nothing else does.
fn with_limit(program: &str) -> Command {
    let known =
        ["/usr/bin", "/usr/local/bin", "/usr/sbin"].iter().any(|folder| Path::new(folder).join(program).is_file());
    assert!(known, "{program} is not installed: `make peers` installs it");
    let mut command = Command::new("timeout");
    command.args(["-k", "2", &LIFE_S.to_string(), program]);
    command
}

fn fixture(name: &str) -> String {
    format!("{}/fixtures/sip/{name}.xml", env!("CARGO_MANIFEST_DIR"))
}

/// Collects what a stream says until it closes.
fn listen(mut stream: impl Read + Send + 'static, output: &Arc<Output>) {
    let output = Arc::clone(output);
    let read = move || {
        let mut bytes = [0; 4096];
        loop {
            let count = stream.read(&mut bytes).unwrap_or(0);
            let mut said = output.said.lock();
            said.text.push_str(&String::from_utf8_lossy(&bytes[..count]));
            if said.text.len() > OUTPUT_BYTES {
                said.text = said.text.chars().skip(OUTPUT_BYTES / 2).collect();
            }
            said.open_streams -= u32::from(count == 0);
            output.changed.notify_all();
            if count == 0 {
                break;
            }
        }
    };
    thread::Builder::new().name("peer output".to_owned()).spawn(read).expect("the system has a thread left");
}

/// Returns the first of [`PORTS_PER_PEER`] ports of 127.0.0.1 that nobody uses; no other peer of this process gets
/// them.
fn free_ports() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let blocks = (PORTS.end - PORTS.start) / PORTS_PER_PEER;
    // Another process that runs the same tests starts elsewhere.
    let own = (std::process::id() % u32::from(blocks)) as u16;
    let free = |port: u16| UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    (0..blocks)
        .map(|_| PORTS.start + (own + NEXT.fetch_add(1, Ordering::Relaxed)) % blocks * PORTS_PER_PEER)
        .find(|first| (*first..first + PORTS_PER_PEER).all(free))
        .expect("some thousand ports are not all in use")
}

/// True if a UDP socket has this port, or a TCP socket listens on it. It reads the kernel's lists, since binding the
/// port could take it from the peer.
fn listens(port: u16) -> bool {
    let wanted = format!(":{port:04X}");
    // The state of a TCP socket that listens is 0A, that of a UDP socket 07.
    [("/proc/net/udp", "07"), ("/proc/net/tcp", "0A")].into_iter().any(|(path, open)| {
        let table = fs::read_to_string(path).expect("every Linux has it");
        table.lines().skip(1).any(|line| {
            let mut words = line.split_whitespace();
            words.nth(1).is_some_and(|local| local.ends_with(&wanted)) && words.nth(1) == Some(open)
        })
    })
}

/// Sounds have the codec's own rate, so that the softphone does not resample: from 8 to 16 kHz that takes 1.8 dB off
/// the tone.
fn baresip_config(folder: &Path, first_port: u16, rate_hz: u32) -> String {
    let tone = folder.join("tone.wav");
    let (tone, media, last) = (tone.display(), first_port + 2, first_port + CONTROL - 1);
    let control = first_port + CONTROL;
    format!(
        "poll_method epoll\n\
         sip_listen 127.0.0.1:{first_port}\n\
         net_interface 127.0.0.1\n\
         rtp_ports {media}-{last}\n\
         ctrl_tcp_listen 127.0.0.1:{control}\n\
         audio_source aufile,{tone}\n\
         audio_alert aufile,{tone}\n\
         ausrc_srate {rate_hz}\nauplay_srate {rate_hz}\nausrc_channels 1\nauplay_channels 1\n\
         snd_path {}\n\
         module_path {}\n\
         module g711.so\nmodule g722.so\nmodule opus.so\nmodule l16.so\nmodule srtp.so\nmodule dtls_srtp.so\n\
         module aufile.so\nmodule sndfile.so\nmodule_app account.so\nmodule_app menu.so\nmodule_app ctrl_tcp.so\n",
        folder.display(),
        baresip_modules().display(),
    )
}

fn baresip_modules() -> PathBuf {
    let folders = [
        "/usr/lib/baresip/modules",
        "/usr/lib/x86_64-linux-gnu/baresip/modules",
        "/usr/lib/aarch64-linux-gnu/baresip/modules",
    ];
    folders.iter().map(PathBuf::from).find(|folder| folder.is_dir()).expect("baresip is installed with its modules")
}

/// Returns two minutes of [`TONE_HZ`] as a WAV file.
fn tone(rate: u32) -> Vec<u8> {
    let samples = rate * LIFE_S;
    let mut file = Vec::with_capacity(44 + 2 * samples as usize);
    file.extend_from_slice(b"RIFF");
    file.extend_from_slice(&(36 + 2 * samples).to_le_bytes());
    file.extend_from_slice(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend_from_slice(&rate.to_le_bytes());
    file.extend_from_slice(&(2 * rate).to_le_bytes());
    file.extend_from_slice(b"\x02\0\x10\0data");
    file.extend_from_slice(&(2 * samples).to_le_bytes());
    for n in 0..samples {
        let turn = f64::from(n % rate * TONE_HZ % rate) / f64::from(rate);
        file.extend_from_slice(&((8000.0 * (turn * std::f64::consts::TAU).sin()) as i16).to_le_bytes());
    }
    file
}
