//! Transfers that an agent asks for: refused, and told of where one was to end the call.

use serde_json::json;

use super::Fixture;

/// What is kept of a call's messages: one that asks for a transfer (RFC 3515) and its answer, after others.
const ASKED: &str = "1 received from 192.0.2.1:5060 at 192.0.2.2:5060\nOPTIONS sip:ringer@192.0.2.2 SIP/2.0\nAllow: REFER \n\n\
    2 received from 192.0.2.1:5060 at 192.0.2.2:5060\nREFER sip:ringer@192.0.2.2 SIP/2.0\nRefer-To: <sip:eve@192.0.2.3>\n\n\
    3 sent to 192.0.2.1:5060 at 192.0.2.2:5060\nSIP/2.0 603 Decline\nCSeq: 2 REFER\n\n";

#[tokio::test]
async fn a_transfer_that_did_not_end_the_call_is_told() {
    let f = Fixture::new().await;
    let other = ASKED.replace("REFER sip", "INFO sip");
    let told = "hangup_on_transfer: transfers are refused in this version";
    for (ends, log, expect) in [
        (true, Some(ASKED), Some(told)),
        (true, Some(other.as_str()), None),
        (true, None, None),
        (false, Some(ASKED), None),
    ] {
        let (_, simulation, _) = f.booth(json!({ "hangup_on_transfer": ends }), 1).await;
        let (_, ids) = f.run(simulation, json!({})).await;
        if let Some(log) = log {
            let folder = f.service.result_folder(ids[0]);
            std::fs::create_dir_all(&folder).expect("a folder");
            std::fs::write(folder.join("sip.log"), log).expect("a file");
        }
        let found = f.service.idle_transfer(&f.caller.organization, ids[0]).await.expect("it can be looked for");
        assert_eq!(found.as_deref(), expect, "{ends} {log:?}");
    }
}
