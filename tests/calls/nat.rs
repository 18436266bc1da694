//! An engine behind a NAT without an open port: it registers with Kamailio outside and is called from there. Three
//! network namespaces of its own: inside, the NAT, outside. Needs root, as `make test` has it, and the programs `ip`
//! and `nft`.

use std::fs::File;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::sync_channel;

use ringer::engine::{CallReport, Standing};

use super::house::House;
use super::registration::{call, hold_call, stands};
use super::stage::Stage;
use crate::peers::registrar::{OWN_NUMBER, PASSWORD, Registrar, USER};

const INSIDE: &str = "10.77.0.2";
const GATE_INSIDE: &str = "10.77.0.1";
const GATE_OUTSIDE: &str = "10.78.0.1";
const OUTSIDE: &str = "10.78.0.2";
/// Port of Kamailio; its namespace has no other programs.
const PORT: u16 = 5060;

/// Three network namespaces, gone with the test.
struct Network {
    inside: String,
    gate: String,
    outside: String,
}

fn run(program: &str, arguments: &str) {
    let output = Command::new(program).args(arguments.split(' ')).output();
    let output = output.unwrap_or_else(|error| panic!("{program} cannot be run: {error}; `make peers` installs it"));
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments}: {why}");
}

impl Network {
    fn new() -> Network {
        // SAFETY: a plain system call without arguments.
        let user = unsafe { libc::geteuid() };
        assert_eq!(user, 0, "network namespaces need root: run the tests as root, or with sudo");
        let name = |part: &str| format!("rn{}{part}", std::process::id());
        let network = Network { inside: name("i"), gate: name("g"), outside: name("o") };
        let Network { inside, gate, outside } = &network;
        for namespace in [inside, gate, outside] {
            run("ip", &format!("netns add {namespace}"));
            run("ip", &format!("-n {namespace} link set lo up"));
        }
        for (namespace, near, own, other) in
            [(inside, "in", INSIDE, GATE_INSIDE), (outside, "out", OUTSIDE, GATE_OUTSIDE)]
        {
            run("ip", &format!("-n {gate} link add {near} type veth peer name eth netns {namespace}"));
            run("ip", &format!("-n {gate} addr add {other}/24 dev {near}"));
            run("ip", &format!("-n {gate} link set {near} up"));
            run("ip", &format!("-n {namespace} addr add {own}/24 dev eth"));
            run("ip", &format!("-n {namespace} link set eth up"));
        }
        run("ip", &format!("-n {inside} route add default via {GATE_INSIDE}"));
        let exec = |arguments: &str| run("ip", &format!("netns exec {gate} {arguments}"));
        exec("sysctl -qw net.ipv4.ip_forward=1");
        exec("nft add table ip nat");
        exec("nft add chain ip nat out { type nat hook postrouting priority 100 ; }");
        // The ports that others see are not those of the engine.
        exec("nft add rule ip nat out oifname out meta l4proto { tcp, udp } masquerade to :30000-39999 random");
        network
    }

    /// Runs the rest of the test in a namespace, on threads of its own.
    fn within<T: Send + 'static>(namespace: &str, work: impl AsyncFnOnce() -> T + Send + 'static) -> T {
        let namespace = File::open(format!("/run/netns/{namespace}")).expect("it was made");
        let (done, result) = sync_channel(1);
        let work = move || {
            // SAFETY: the descriptor is open for the whole call. It moves this thread, and those that it starts, alone.
            let moved = unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) };
            assert_eq!(moved, 0, "{}", std::io::Error::last_os_error());
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("there are threads");
            done.send(runtime.block_on(work())).expect("it is waited for");
        };
        let thread = std::thread::Builder::new().name("within".to_owned()).spawn(work).expect("there are threads");
        let result = result.recv();
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
        result.expect("it has ended well")
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for namespace in [&self.inside, &self.gate, &self.outside] {
            let _ = Command::new("ip").args(["netns", "del", namespace]).output();
        }
    }
}

#[test]
fn a_call_comes_in_through_a_nat_without_an_open_port() {
    let network = Network::new();
    let host: IpAddr = OUTSIDE.parse().expect("an address");
    for transport in ["udp", "tcp"] {
        let namespace = Some(network.outside.clone());
        let registrar = Registrar { host, namespace, port: Some(PORT), ..Registrar::new("MD5") }.start();
        let outside = network.outside.clone();
        let held = Network::within(&network.inside, async move || {
            let settings = format!(
                "[sip.trunks.near]\nhost = '{OUTSIDE}'\nusername = '{USER}'\npassword = '{PASSWORD}'\nregister = true\n\
                 keepalive_s = 0\nnumbers = ['{OWN_NUMBER}']\ntransport = '{transport}'"
            );
            let house = House::with_lines(&settings, format!("{INSIDE}:5060").parse().expect("an address")).await;
            stands(&house, Standing::Up).await;
            let folder = tempfile::tempdir().expect("a folder");
            let result = hold_call(&house, 6, folder.path(), call_from(outside, folder.path().to_owned())).await;
            house.stop().await;
            registrar.wait_for(";expires=0 authorization");
            (result, registrar.output())
        });
        let (result, output) = held;
        let source = result["metadata"]["incoming"]["source"].as_str();
        assert!(source.is_some_and(|source| source.starts_with(OUTSIDE)), "{result}");
        let seen = output.lines().find(|line| line.contains("seen: REGISTER"));
        assert!(seen.is_some_and(|line| line.contains(&format!("from {GATE_OUTSIDE}:"))), "{output}");
    }
}

/// Calls the number of the trunk from outside, with sockets of that side.
async fn call_from(outside: String, folder: PathBuf) -> CallReport {
    let calling = tokio::task::spawn_blocking(move || {
        Network::within(&outside, async move || {
            let sip: SocketAddr = format!("{OUTSIDE}:5080").parse().expect("an address");
            let caller = Stage::at(sip.into()).await;
            let report = call(&caller, format!("{OUTSIDE}:{PORT}").parse().expect("an address"), &folder).await;
            caller.engine.stop().await;
            report
        })
    });
    calling.await.expect("it has ended well")
}
