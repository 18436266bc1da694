//! Kamailio as a registrar with digest, and as the trunk behind it: numbers that it refuses, one that it delivers to
//! whoever is registered, and all others that it sends on.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::Command;

use super::kamailio::tls;
use super::{Peer, free_ports, listens, with_limit};

/// User that may register and call.
pub(crate) const USER: &str = "ringer";
/// Password that belongs to [`USER`].
pub(crate) const PASSWORD: &str = "let-me-in";
/// Number that is delivered to whoever is registered as [`USER`].
pub(crate) const OWN_NUMBER: &str = "+15550001111";

/// Answers that the numbers `+15550000CODE` get.
const REFUSED: [u16; 6] = [403, 404, 484, 486, 503, 604];

/// Text of the configuration with these values in the places of `@NAME@`.
const CONFIG: &str = r#"debug=1
log_stderror=yes
children=2
tcp_children=1
tcp_connection_lifetime=3605
auto_aliases=no
listen=udp:@HOST@:@PORT@
listen=tcp:@HOST@:@PORT@
@TLS@loadmodule "sl.so"
loadmodule "tm.so"
loadmodule "rr.so"
loadmodule "pv.so"
loadmodule "siputils.so"
loadmodule "textops.so"
loadmodule "usrloc.so"
loadmodule "registrar.so"
loadmodule "auth.so"
loadmodule "nathelper.so"
loadmodule "xlog.so"
modparam("auth", "algorithm", "@ALGORITHM@")
modparam("auth", "nonce_expire", 5)
modparam("usrloc", "db_mode", 0)
modparam("registrar", "min_expires", 60)
modparam("registrar", "max_expires", 120)
request_route {
    if (is_method("CANCEL")) {
        if (t_check_trans()) { t_relay(); }
        exit;
    }
    if (has_totag()) {
        if (loose_route() || (is_method("ACK") && t_check_trans())) { t_relay(); }
        exit;
    }
    if (is_method("REGISTER")) {
        xlog("L_ERR", "seen: REGISTER from $si:$sp contact $ct authorization $(hdr(Authorization){s.len})\n");
        if (!pv_www_authenticate("desk", "@PASSWORD@", "0")) {
            www_challenge("desk", "1");
            exit;
        }
        save("location");
        exit;
    }
    if (is_method("OPTIONS")) {
        sl_send_reply("200", "OK");
        exit;
    }
    if (!is_method("INVITE|MESSAGE")) {
        sl_send_reply("405", "Method Not Allowed");
        exit;
    }
    xlog("L_ERR", "seen: $rm $rU from $fU route $hdr(Route)\n");
    switch ($rU) {
        case "@OWN@":
            record_route();
            $ru = "sip:@USER@@@HOST@:@PORT@";
            if (!lookup("location")) {
                sl_send_reply("480", "Not registered");
                exit;
            }
            t_on_reply("AROUND_NAT");
            t_relay();
            exit;
        case "+15550000401":
            www_challenge("elsewhere", "1");
            exit;
        case "+15550000407":
            if (!pv_proxy_authenticate("desk", "@PASSWORD@", "0")) {
                proxy_challenge("desk", "1");
                exit;
            }
            consume_credentials();
            break;
@REFUSED@
        case "+15550001403":
            sl_send_reply("403", "Caller number is not yours");
            exit;
        case "+15550001503":
            append_to_reply("Retry-After: 5\r\n");
            sl_send_reply("503", "All circuits are busy");
            exit;
    }
    record_route();
    $ru = "sip:" + $rU + "@@BACKEND@";
    t_relay();
}
onreply_route[AROUND_NAT] {
    if (has_body("application/sdp")) { fix_nated_sdp("2"); }
}
"#;

/// A registrar to start.
pub(crate) struct Registrar<'a> {
    /// Hash of its digest: `MD5` or `SHA-256`.
    pub algorithm: &'static str,
    /// Host that it listens at.
    pub host: IpAddr,
    /// Place that calls go on to; nobody's by default.
    pub backend: SocketAddr,
    /// Network namespace that it runs in.
    pub namespace: Option<String>,
    /// Port that it listens at; `None`: a free one.
    pub port: Option<u16>,
    /// Folder with certificates as of [`super::Softphone`]; with it the registrar listens for TLS at 127.0.0.1, at the
    /// port after that of the others.
    pub certificates: Option<&'a Path>,
}

impl Registrar<'_> {
    pub(crate) fn new(algorithm: &'static str) -> Self {
        let host = IpAddr::from([127, 0, 0, 1]);
        Registrar {
            algorithm,
            host,
            backend: SocketAddr::new(host, 9),
            namespace: None,
            port: None,
            certificates: None,
        }
    }

    /// Starts it, and waits until it listens.
    pub(crate) fn start(self) -> Peer {
        let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
        let port = self.port.unwrap_or_else(free_ports);
        let path = |name: &str| folder.path().join(name).display().to_string();
        let refused = REFUSED.map(|code| {
            format!(
                "        case \"+15550000{code}\":\n            sl_send_reply(\"{code}\", \"No\");\n            exit;\n"
            )
        });
        let tls = self.certificates.map_or_else(String::new, |folder| tls(port + 1, folder, false));
        let values = [
            ("TLS", tls),
            ("REFUSED", refused.concat()),
            ("HOST", self.host.to_string()),
            ("PORT", port.to_string()),
            ("ALGORITHM", self.algorithm.to_owned()),
            ("PASSWORD", PASSWORD.to_owned()),
            ("OWN", OWN_NUMBER.to_owned()),
            ("USER", USER.to_owned()),
            ("BACKEND", self.backend.to_string()),
        ];
        let config =
            values.iter().fold(CONFIG.to_owned(), |text, (name, value)| text.replace(&format!("@{name}@"), value));
        fs::write(path("kamailio.cfg"), config).expect("the folder is writable");
        fs::create_dir(path("run")).expect("the folder is writable");
        let mut command = match &self.namespace {
            None => with_limit("kamailio"),
            Some(name) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", name, "timeout", "-k", "2", "120", "kamailio"]);
                command
            }
        };
        command.args(["-DD", "-E", "-m", "32", "-M", "4", "-f", &path("kamailio.cfg"), "-Y", &path("run")]);
        command.args(["-P", &path("pid"), "-w", &path("run")]);
        let mut peer = Peer::start("kamailio", command, folder, port);
        peer.sip = SocketAddr::new(self.host, port);
        if self.namespace.is_none() {
            let last = port + u16::from(self.certificates.is_some());
            let is_up = peer.comes_true(|| listens(last) || peer.has_ended());
            assert!(is_up && !peer.has_ended(), "kamailio does not listen\n{}", peer.report());
        }
        peer
    }
}
