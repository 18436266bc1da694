//! Plan of a run: which scenarios of which files with which seeds, and the resources that are made of them.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::client::{Client, Trouble};
use super::files::files;
use super::platforms;
use super::rooms::{self, Entry, Tokens};

use super::{Args, Stop, refusal, text_of};
use crate::cli::out::Out;
use crate::clock::new_id;
use crate::config::{nearest, variable};
use crate::judge::catalogue;
use crate::suite::expand::{Connect, Made};
use crate::suite::file::{Scenario, from_file};
use crate::suite::mask::mask;
use crate::suite::spawn::Spawn;
use crate::suite::telephone::TelephoneLine;
use crate::suite::verdict::Judgement;
use crate::suite::yaml::Place;
use crate::suite::{Played, baseline};

/// Calls of which a run may consist.
const CALLS_MAX: usize = 100_000;

/// A file of the run.
pub(crate) struct Suite {
    /// Position among the files.
    pub at: usize,
    /// Path as it was found.
    pub file: String,
    /// Connection to the agent of the suite.
    pub connect: Connect,
    /// Command that is started before the calls.
    pub spawn: Option<Spawn>,
    /// Way into the rooms of a room server; `None`: another connection.
    pub entry: Option<Entry>,
}

/// One call to make.
#[derive(Clone)]
pub(crate) struct Job {
    /// Place of its file.
    pub suite: usize,
    /// File of the suite, as it was named.
    pub file: String,
    /// Scenario that the call plays.
    pub scenario: Scenario,
    /// Arm of the run that the call belongs to; empty where there is one alone.
    pub arm: String,
    /// True if the call counts for the gate of its scenario.
    pub gates: bool,
    /// Hash of its scenario as the file has it: it tells a later command whether the file has changed.
    pub fingerprint: String,
    /// Base seed of the repetition.
    pub seed: u64,
}

impl Job {
    /// Returns the name of its scenario, with its arm in brackets where there are several.
    pub(crate) fn title(&self) -> String {
        if self.arm.is_empty() { self.scenario.name.clone() } else { format!("{} [{}]", self.scenario.name, self.arm) }
    }

    /// Returns the record of a call that was not made.
    pub(crate) fn not_made(&self, judgement: Judgement) -> Played {
        Played {
            file: self.file.clone(),
            scenario: self.scenario.name.clone(),
            arm: self.arm.clone(),
            gates: self.gates,
            seed: self.seed,
            judgement,
            record: Value::Null,
            transcript: Vec::new(),
            timeline: Vec::new(),
            turns: Vec::new(),
            peaks: Value::Null,
            opus: Vec::new(),
            files: Vec::new(),
        }
    }
}

/// The simulation of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ready {
    /// Id of the simulation at the engine.
    pub simulation: String,
    /// Turns of the agent that an earlier run heard whole.
    pub heard_whole: Vec<Value>,
}

/// Suites and calls of the whole run.
#[derive(Default)]
pub(crate) struct Plan {
    /// Suites of the run, in the order of their files.
    pub suites: Vec<Suite>,
    /// Calls in the order of files, scenarios and seeds.
    pub jobs: Vec<Job>,
    /// Scenarios that were filtered out: file and name.
    pub skipped: Vec<(String, String)>,
    /// Values that are never printed.
    pub masked: Vec<String>,
    /// Codecs of the run's own engine.
    pub codecs: Vec<String>,
    /// True if all calls stay on this machine.
    pub is_local: bool,
    /// Key of the run's own engine.
    pub key: String,
    /// True if the sample agent is called in virtual time.
    pub sim: bool,
    /// True if a server makes the calls.
    pub is_at_server: bool,
    /// Metrics of expectations that are not built in, each with its position.
    pub unknown_metrics: Vec<(String, Place)>,
    /// Lines that each scenario is called through; empty: as its file says.
    pub lines: Vec<&'static TelephoneLine>,
    /// Remarks on the plan, for a person.
    pub notes: Vec<String>,
}

impl Plan {
    fn empty(args: &Args) -> Plan {
        Plan {
            is_local: true,
            key: format!("run-{}", new_id()),
            sim: args.sim,
            is_at_server: args.server.is_some(),
            ..Plan::default()
        }
    }

    /// Returns a plan of calls that no file names.
    pub(crate) fn of_calls(suite: Suite, jobs: Vec<Job>, args: &Args) -> Plan {
        Plan { suites: vec![suite], jobs, ..Plan::empty(args) }
    }

    /// Reads the files; `arrange` may make several calls of one.
    ///
    /// # Errors
    /// Everything that is wrong in them, or that no scenario is asked for.
    pub(crate) fn from_args(args: &Args, arrange: impl Fn(&mut Plan, &Args) -> Result<(), Stop>) -> Result<Plan, Stop> {
        let mut plan = Plan::empty(args);
        let (mut problems, mut names): (Vec<String>, Vec<(String, String)>) = Default::default();
        let mut wanted = 0;
        for (at, path) in files(&args.paths).map_err(Stop::bad)?.into_iter().enumerate() {
            let suite = match from_file(&path, &variable) {
                Ok(suite) => suite,
                Err(wrong) => {
                    problems.extend(wrong.iter().map(ToString::to_string));
                    continue;
                }
            };
            let file = path.to_string_lossy().into_owned();
            let masked = suite.masked.clone();
            plan.mask(suite.masked);
            problems.extend(plan.admit(args, &file, &suite.connect, suite.spawn.is_some()));
            let entry = plan.room_entry(args, &suite.connect).unwrap_or_else(|why| {
                problems.push(why);
                None
            });
            for scenario in suite.scenarios {
                if let Some((_, other)) = names.iter().find(|(name, _)| *name == scenario.name) {
                    problems.push(format!("{}: the name '{}' is in {other} too", scenario.at, scenario.name));
                }
                names.push((scenario.name.clone(), file.clone()));
                problems.extend(plan.check_metrics(&scenario.metrics));
                let has_tag = args.tag.is_empty() || scenario.tags.iter().any(|tag| args.tag.contains(tag));
                if !has_tag || args.filter.as_ref().is_some_and(|text| !scenario.name.contains(text)) {
                    plan.skipped.push((file.clone(), scenario.name));
                    continue;
                }
                wanted += 1;
                if args.shard.is_some_and(|shard| !shard.has(&scenario.name)) {
                    continue;
                }
                let repeat = args.repeat.or(scenario.repeat).unwrap_or(1);
                let fingerprint = fingerprint(&scenario, &masked);
                let job = |repetition| Job {
                    suite: at,
                    file: file.clone(),
                    scenario: scenario.clone(),
                    arm: String::new(),
                    gates: true,
                    fingerprint: fingerprint.clone(),
                    seed: args.seed + u64::from(repetition),
                };
                plan.jobs.extend((0..repeat).map(job));
            }
            plan.suites.push(Suite { at, file, connect: suite.connect, spawn: suite.spawn, entry });
        }
        arrange(&mut plan, args)?;
        problems.extend(plan.repeated_dispatches());
        if problems.is_empty() && wanted == 0 {
            let asked = args.filter.iter().chain(&args.tag).next().map_or("", String::as_str);
            let near = nearest(asked, names.iter().map(|(name, _)| name.as_str()));
            problems.push(format!("no scenario matches {asked:?}{near}"));
        }
        if plan.jobs.len() > CALLS_MAX {
            problems.push(format!("the run would make {} calls, at most {CALLS_MAX} are made", plan.jobs.len()));
        }
        if args.server.is_some() && variable("RINGER_API_KEY").is_none() && !args.dry_run && !args.list {
            problems.push("RINGER_API_KEY is not set: it is the key of the server".to_owned());
        }
        if problems.is_empty() { Ok(plan) } else { Err(Stop::Bad(plan.hidden(problems))) }
    }

    /// Returns a plan without calls, whose suites are read and which a server carries out.
    pub(crate) fn of_server(suites: Vec<Suite>) -> Plan {
        let masked = suites.iter().flat_map(|suite| platforms::secrets(&suite.connect)).collect();
        let mut plan = Plan { suites, is_at_server: true, ..Plan::default() };
        plan.mask(masked);
        plan
    }

    /// Returns problems of suites whose calls would each need an agent dispatched into the same room.
    pub(crate) fn repeated_dispatches(&self) -> Vec<String> {
        let problem = |suite: &Suite| {
            let calls = self.jobs.iter().filter(|job| job.suite == suite.at).count();
            rooms::repeated_dispatch(&suite.connect, suite.entry.as_ref()?, calls)
        };
        self.suites.iter().filter_map(problem).collect()
    }

    /// Returns problems of metrics that expectations name. Names that are not built in may be those of a server's own
    /// metrics.
    pub(crate) fn check_metrics(&mut self, named: &[(String, Place)]) -> Vec<String> {
        let mut problems = Vec::new();
        for (name, at) in named {
            match catalogue::built_in(name) {
                Some(metric) if metric.is_number() => {}
                Some(metric) => problems.push(format!(
                    "{at}: the metric {name} has no bounds: its value is no number, but {}",
                    metric.unit
                )),
                None if self.is_at_server => self.unknown_metrics.push((name.clone(), at.clone())),
                None => problems.push(unknown_metric(name, at, &[])),
            }
        }
        problems
    }

    /// Checks the metrics that are not built in against those of the server.
    ///
    /// # Errors
    /// The server does not know them, or is not reached.
    pub(crate) async fn check_own_metrics(&self, client: &Client) -> Result<(), Stop> {
        if self.unknown_metrics.is_empty() {
            return Ok(());
        }
        let (mut own, mut page): (Vec<String>, u64) = (Vec::new(), 1);
        loop {
            let answer = client.get(&format!("/v1/custom-metrics?page={page}&page_size=200")).await?;
            let named = answer["metrics"].as_array().into_iter().flatten();
            let before = own.len();
            own.extend(named.filter_map(|metric| metric["name"].as_str()).map(str::to_owned));
            if own.len() == before || own.len() as u64 >= answer["total_count"].as_u64().unwrap_or(0) {
                break;
            }
            page += 1;
        }
        let unknown = self.unknown_metrics.iter().filter(|(name, _)| !own.contains(name));
        let problems: Vec<String> = unknown.map(|(name, at)| unknown_metric(name, at, &own)).collect();
        if problems.is_empty() { Ok(()) } else { Err(Stop::Bad(self.hidden(problems))) }
    }

    pub(crate) fn hidden(&self, lines: Vec<String>) -> Vec<String> {
        lines.iter().map(|line| mask(line, &self.masked)).collect()
    }

    /// Returns problems of a file with these flags.
    fn admit(&mut self, args: &Args, file: &str, connect: &Connect, spawns: bool) -> Vec<String> {
        let mut problems = Vec::new();
        if spawns && args.server.is_some() && !args.spawn {
            problems.push(format!("{file}: spawn together with --server needs --spawn"));
        }
        self.mask(platforms::secrets(connect));
        let others = self.suites.iter().map(|suite| (suite.file.as_str(), &suite.connect));
        problems.extend(platforms::problem(others, connect));
        match connect {
            Connect::Named(name) if args.server.is_none() && !args.sim => {
                problems.push(format!("{file}: agent {name} is on a server: it needs --server"));
            }
            Connect::Named(_) => {}
            Connect::Made(made) => {
                if !made.codecs.is_empty() && args.server.is_some() {
                    problems
                        .push(format!("{file}: codecs are settings of the server, and cannot be given with --server"));
                }
                if !made.codecs.is_empty() && !self.codecs.is_empty() && self.codecs != made.codecs {
                    problems.push(format!("{file}: another file of the run has other codecs"));
                }
                if !made.codecs.is_empty() {
                    self.codecs.clone_from(&made.codecs);
                }
                problems.extend(
                    made.pipeline_problem(args.server.is_some()).filter(|_| !args.sim).map(|why| why.to_string()),
                );
                // A telephone number is reached through a trunk, which is elsewhere.
                let is_near = made.kind != "phone" && is_here(made.agent.get("sip_uri").and_then(Value::as_str));
                self.is_local &= args.sim || is_near;
            }
        }
        problems
    }

    /// Returns the way of a suite into the rooms of its server.
    fn room_entry(&mut self, args: &Args, connect: &Connect) -> Result<Option<Entry>, String> {
        let Some(entry) = rooms::entry(args, connect)? else { return Ok(None) };
        self.masked.push(entry.secret().to_owned());
        let server = |connect: &Connect| match connect {
            Connect::Made(made) => made.room.clone(),
            Connect::Named(_) => None,
        };
        let Some(room) = server(connect).filter(|_| !entry.is_shared()) else { return Ok(Some(entry)) };
        let creating = self.suites.iter().filter(|suite| matches!(suite.entry, Some(Entry::New(_))));
        match creating.filter_map(|suite| server(&suite.connect)).find(|other| other.server != room.server) {
            Some(other) => Err(format!(
                "{}: the run has one room server, and {} is named before: run the files one by one",
                room.at, other.server
            )),
            None => Ok(Some(entry)),
        }
    }

    /// Masks further values in all that is printed and written. A longer value may hold a shorter one of another file.
    fn mask(&mut self, values: Vec<String>) {
        self.masked.extend(values);
        self.masked.sort_by_key(|value| std::cmp::Reverse(value.len()));
    }

    /// Prints the scenarios (`--list`), or what would be made of them (`--dry-run`).
    pub(crate) fn tell(&self, args: &Args, out: &Out) {
        if args.list {
            let mut last = None;
            for job in self.jobs.iter().filter(|job| job.seed == args.seed) {
                if last != Some(job.suite) {
                    out.line(&job.file);
                }
                last = Some(job.suite);
                let tags = if job.scenario.tags.is_empty() {
                    String::new()
                } else {
                    format!(" [{}]", job.scenario.tags.join(", "))
                };
                out.line(mask(&format!("  {}{tags}", job.scenario.name), &self.masked));
            }
            return;
        }
        let made = |suite: &Suite| {
            let (agent, room) = match &suite.connect {
                Connect::Named(name) => (json!(name), None),
                Connect::Made(made) => (Value::Object(made.agent.clone()), made.room.as_ref()),
            };
            let room = room.map(|room| json!({ "server": room.server, "room_name": room.name }));
            let jobs = self.jobs.iter().filter(|job| job.suite == suite.at);
            let jobs = jobs.map(|job| {
                json!({
                    "scenario": job.scenario.name, "arm": Some(&job.arm).filter(|arm| !arm.is_empty()),
                    "seed": job.seed, "digital_human": job.scenario.human,
                    "simulation": job.scenario.simulation,
                })
            });
            json!({
                "file": suite.file, "agent": agent, "room": room, "spawn": suite.spawn.as_ref().map(|spawn| &spawn.command),
                "calls": jobs.collect::<Vec<_>>(),
            })
        };
        let all: Vec<Value> = self.suites.iter().map(made).collect();
        out.line(mask(&format!("{:#}", json!({ "suites": all, "calls": self.jobs.len() })), &self.masked));
    }

    /// Makes agents, simulations and Digital Humans; a simulation for each call's scenario. `earlier`: the run that is
    /// compared with. `tokens`: the server that hands out those of shared rooms. `is_trial`: at an engine without
    /// calls, which does not know the agents of a server.
    ///
    /// # Errors
    /// The server is not reached, or refuses a resource: then nothing was called.
    pub(crate) async fn make(
        &self,
        client: &Client,
        earlier: &[(Played, Value)],
        tokens: Option<&Tokens>,
        is_trial: bool,
    ) -> Result<Vec<Ready>, Stop> {
        let mut agents = Vec::new();
        for suite in &self.suites {
            let has_jobs = self.jobs.iter().any(|job| job.suite == suite.at);
            let agent = if has_jobs { self.agent(client, suite, tokens, is_trial).await? } else { String::new() };
            agents.push((suite.at, agent));
        }
        let mut ready: Vec<Ready> = Vec::new();
        for (at, job) in self.jobs.iter().enumerate() {
            let same = |other: &Job| {
                other.suite == job.suite && other.scenario.name == job.scenario.name && other.arm == job.arm
            };
            if let Some(before) = self.jobs[..at].iter().rposition(same) {
                ready.push(ready[before].clone());
                continue;
            }
            let agent = agents.iter().find(|(suite, _)| *suite == job.suite).map_or("", |(_, agent)| agent);
            let describe = |trouble: Trouble| match trouble {
                Trouble::Refused(refusal) => {
                    let what = format!("scenario '{}'", job.scenario.name);
                    let lines = refusal::lines(&refusal, &what, &job.scenario.sources, &job.scenario.at);
                    Stop::Bad(self.hidden(lines))
                }
                other => other.into(),
            };
            let mut simulation = job.scenario.simulation.clone();
            simulation.insert("agent_id".into(), json!(agent));
            simulation.entry("name").or_insert_with(|| json!(job.scenario.name));
            let made = client.post("/v1/create-simulation", &Value::Object(simulation)).await.map_err(describe)?;
            let simulation = text_of(&made["simulation_id"]);
            let body = json!({ "digital_human": job.scenario.human, "simulation_ids": [made["simulation_id"]] });
            client.post("/v1/create-digital-human", &body).await.map_err(describe)?;
            let heard_whole = baseline::heard_whole(earlier, &job.file, &job.scenario.name);
            ready.push(Ready { simulation, heard_whole });
        }
        Ok(ready)
    }

    async fn agent(
        &self,
        client: &Client,
        suite: &Suite,
        tokens: Option<&Tokens>,
        is_trial: bool,
    ) -> Result<String, Stop> {
        let sample = sample_agent(suite);
        let made = match &suite.connect {
            _ if self.sim => &sample,
            Connect::Made(made) => made,
            Connect::Named(_) if is_trial => &sample,
            Connect::Named(name) => return find_agent(client, suite, name).await,
        };
        let mut body = made.agent.clone();
        body.insert("name".into(), json!(format!("Suite {}", suite.file)));
        if is_trial && self.is_at_server {
            // The dialects of a server are its own.
            body.remove("websocket_dialect");
        }
        let describe = |trouble: Trouble| match trouble {
            Trouble::Refused(refusal) => {
                Stop::Bad(self.hidden(refusal::lines(&refusal, "connect", &made.sources, &made.at)))
            }
            other => other.into(),
        };
        if !made.integration.is_empty() {
            client.patch("/v1/integrations", &Value::Object(made.integration.clone())).await.map_err(describe)?;
        }
        match (&suite.entry, &made.room) {
            (Some(Entry::New(key)), Some(room)) => {
                client.patch("/v1/integrations", &rooms::integration(room, key)).await.map_err(describe)?;
            }
            (Some(_), _) => body.extend(rooms::agent_fields(tokens, suite.at)),
            (None, _) => {}
        }
        Ok(text_of(&client.post("/v1/add-agent", &Value::Object(body)).await.map_err(describe)?["agent_id"]))
    }
}

/// Returns a hash of the fields of a scenario, without the `masked` values.
pub(crate) fn fingerprint(scenario: &Scenario, masked: &[String]) -> String {
    let fields = json!({ "digital_human": scenario.human, "simulation": scenario.simulation });
    hex::encode(Sha256::digest(mask(&fields.to_string(), masked)))
}

/// Returns a line about a metric that is neither built in nor one of the server's `own`.
fn unknown_metric(name: &str, at: &Place, own: &[String]) -> String {
    let mut known: Vec<&str> =
        catalogue::BUILT_IN.iter().filter(|metric| metric.is_number()).map(|metric| metric.name).collect();
    known.extend(own.iter().map(String::as_str));
    let near = nearest(name, known.into_iter());
    let hint = if near.is_empty() { "; `ringer run --metrics` lists them" } else { "" };
    format!("{at}: the metric {name} is not known{near}{hint}")
}

/// Returns the sample agent in the place of what a suite calls; the user of a SIP address may name a fault of it.
fn sample_agent(suite: &Suite) -> Made {
    let uri = match &suite.connect {
        Connect::Made(made) => made.agent.get("sip_uri").and_then(Value::as_str).unwrap_or_default(),
        Connect::Named(_) => "",
    };
    let user = uri.trim_start_matches("sip:").split_once('@').map_or("desk", |(user, _)| user);
    let agent = json!({
        "type": "INBOUND", "mode": "VOICE", "connection_type": "SIP", "sip_uri": format!("sip:{user}@127.0.0.1:5080"),
    });
    let agent = agent.as_object().cloned().unwrap_or_default();
    Made {
        kind: "sip",
        agent,
        codecs: Vec::new(),
        at: Place::default(),
        sources: Vec::new(),
        integration: Map::new(),
        room: None,
    }
}

async fn find_agent(client: &Client, suite: &Suite, name: &str) -> Result<String, Stop> {
    let all = client.get("/v1/all-agents").await?;
    let agents = all["agents"].as_array().or(all.as_array()).cloned().unwrap_or_default();
    let of = |agent: &Value| (text_of(&agent["id"]), agent["name"].as_str().unwrap_or_default().to_owned());
    let agents: Vec<(String, String)> = agents.iter().map(of).collect();
    let by_name: Vec<&(String, String)> = agents.iter().filter(|(_, known)| known == name).collect();
    match by_name[..] {
        [(id, _)] => Ok(id.clone()),
        [] if agents.iter().any(|(id, _)| id == name) => Ok(name.to_owned()),
        [] => {
            let near = nearest(name, agents.iter().map(|(_, known)| known.as_str()));
            Err(Stop::bad(format!("{}: the server has no agent {name:?}{near}", suite.file)))
        }
        _ => Err(Stop::bad(format!("{}: the server has several agents {name:?}: give the id", suite.file))),
    }
}

/// True for an address of this machine.
fn is_here(uri: Option<&str>) -> bool {
    let Some(uri) = uri else { return true };
    let host = uri.rsplit_once('@').map_or(uri, |(_, host)| host);
    host.starts_with("127.") || host.starts_with("localhost") || host.starts_with("sip:127.")
}
