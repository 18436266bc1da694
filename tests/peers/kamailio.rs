//! Kamailio as a proxy between a caller and a callee, over any transport on either side.

use std::fs;
use std::path::Path;

use super::{Peer, free_ports, listens, with_limit};

/// Returns the lines of a configuration that listens for TLS at this port of 127.0.0.1, with the certificates of
/// `folder` (as of [`super::Softphone`]). `demands`: it wants a certificate of the other side.
pub(super) fn tls(port: u16, folder: &Path, demands: bool) -> String {
    let path = |name: &str| folder.join(name).display().to_string();
    let (own, key, authority, demands) = (path("own.pem"), path("own.key"), path("ca.pem"), u8::from(demands));
    format!(
        r#"enable_tls=yes
listen=tls:127.0.0.1:{port}
loadmodule "tls.so"
modparam("tls", "tls_method", "TLSv1.2+")
modparam("tls", "certificate", "{own}")
modparam("tls", "private_key", "{key}")
modparam("tls", "ca_list", "{authority}")
modparam("tls", "verify_certificate", {demands})
modparam("tls", "require_certificate", {demands})
"#
    )
}

impl Peer {
    /// Starts Kamailio, which records its route and sends each new call on to `target`. It listens over UDP and TCP at
    /// [`Peer::sip`], and over TLS at the port after it, with the certificates of `folder` (as of
    /// [`super::Softphone`]). `demands`: it wants a certificate of the other side of TLS.
    pub(crate) fn proxy(target: &str, certificates: &Path, demands: bool) -> Peer {
        let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
        let port = free_ports();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let config = format!(
            r#"debug=1
log_stderror=yes
children=1
tcp_children=1
auto_aliases=no
listen=udp:127.0.0.1:{port}
listen=tcp:127.0.0.1:{port}
{tls}loadmodule "sl.so"
loadmodule "tm.so"
loadmodule "rr.so"
loadmodule "pv.so"
loadmodule "siputils.so"
loadmodule "textops.so"
request_route {{
    if (is_method("CANCEL")) {{
        if (t_check_trans()) {{ t_relay(); }}
        exit;
    }}
    if (has_totag()) {{
        if (loose_route() || (is_method("ACK") && t_check_trans())) {{ t_relay(); }}
        exit;
    }}
    if (!is_method("INVITE")) {{
        sl_send_reply("405", "Method Not Allowed");
        exit;
    }}
    record_route();
    $ru = "{target}";
    t_relay();
}}
"#,
            tls = tls(port + 1, certificates, demands),
        );
        fs::write(path("kamailio.cfg"), config).expect("the folder is writable");
        fs::create_dir(path("run")).expect("the folder is writable");
        let mut command = with_limit("kamailio");
        command.args(["-DD", "-E", "-m", "32", "-M", "4", "-f", &path("kamailio.cfg"), "-Y", &path("run")]);
        command.args(["-P", &path("pid"), "-w", &path("run")]);
        let peer = Peer::start("kamailio", command, folder, port);
        let is_up = peer.comes_true(|| listens(port) && listens(port + 1) || peer.has_ended());
        assert!(is_up && !peer.has_ended(), "kamailio does not listen\n{}", peer.report());
        peer
    }
}
