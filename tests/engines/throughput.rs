//! Calls that three engines of a database hold in an hour, against those of one.

mod figures {
    use std::process::Stdio;

    use serde_json::json;
    use tokio::time::Instant;

    use super::super::killed;
    use super::super::program::Engine;
    use crate::program::{Program, ringer};

    /// Most calls of each engine at the same time.
    const AT_ONCE: usize = 40;
    /// Length of each call in seconds.
    const CALL_S: u32 = 12;
    /// Calls of one measurement: three times as many as three engines hold at once.
    const CALLS: usize = 9 * AT_ONCE;
    /// Least ratio of the calls in an hour.
    const LEAST: f64 = 2.7;

    /// Returns the completed calls in an hour of this number of engines.
    async fn calls_an_hour(url: &str, agent: &str, engines: usize) -> f64 {
        let mut all = Vec::new();
        for n in 0..engines {
            let (first, name) = (41_000 + 1000 * n, format!("engine-{n}"));
            let ports = format!("{first}-{}", first + 999);
            all.push(Engine::with(&name, url, &ports, &format!("[limits]\nmax_calls = {AT_ONCE}\n")).await);
        }
        let one = &all[0];
        let desk = json!({ "name": "Desk", "type": "INBOUND", "connection_type": "SIP", "sip_uri": agent });
        let agent_id = one.post("/v1/add-agent", desk).await["agent_id"].to_string();
        let simulation = json!({
            "agent_id": agent_id, "max_call_duration": CALL_S, "max_call_duration_units": "seconds",
        });
        let simulation = one.post("/v1/create-simulation", simulation).await["simulation_id"].clone();
        let human = json!({ "digital_human": { "intent": "Hello." }, "simulation_ids": [simulation] });
        one.post("/v1/create-digital-human", human).await;
        #[expect(clippy::disallowed_methods, reason = "real time is measured")]
        let begun = Instant::now();
        let run = json!({ "simulation_id": simulation.to_string(), "seed": 7, "runs_per_digital_human": CALLS });
        let ids = one.post("/v1/queue-simulation-run", run).await["simulation_result_ids"].clone();
        let ids = ids.as_array().expect("ids").clone();
        assert_eq!(ids.len(), CALLS);
        let mut completed = 0;
        for id in &ids {
            let result = one.until_final(id.as_str().expect("a text")).await;
            completed += usize::from(result["status"] == "COMPLETED");
            if result["status"] != "COMPLETED" {
                println!("{id}: {}, {}, {}", result["status"], result["error_code"], result["error_message"]);
            }
        }
        let seconds = begun.elapsed().as_secs_f64();
        assert_eq!(completed, CALLS, "each call is held");
        for engine in all {
            engine.program.kill().await;
        }
        completed as f64 * 3600.0 / seconds
    }

    #[test]
    fn three_engines_hold_the_calls_of_nearly_three() {
        killed::beside(async |database: String| {
            let mut command =
                ringer(&["agent", "--listen", "127.0.0.1:0", "--rtp-ports", "45000-48999", "--codec", "PCMU"]);
            let mut agent = Program::start(command.stderr(Stdio::null()));
            let address = agent.address("sip:").await;
            let one = calls_an_hour(&database, &address, 1).await;
            let three = calls_an_hour(&database, &address, 3).await;
            println!("1 engine {one:.0}, 3 engines {three:.0} calls an hour: {:.2} times", three / one);
            agent.kill().await;
            assert!(three >= LEAST * one, "three engines are to hold {LEAST} times the calls of one");
        });
    }
}
