//! A run with its results in the forms of other programs: tables, JSON, and JUnit's XML for build servers.

mod columns;
mod parquet_file;
mod turns;

use std::collections::btree_map::{BTreeMap, Entry};
use std::io;

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use ringer_base::error::{Error, Result};
use ringer_model::digital_human::DigitalHumanSpec;
use ringer_model::error_code::ErrorCode;
use ringer_model::evaluation::{CustomResult, Evaluation};
use ringer_model::format::{ExportFormat, ExportRows};
use ringer_model::result::{ResultDoc, ResultRecord};
use ringer_model::simulation::SimulationSpec;
use ringer_model::status::{Outcome, ResultStatus};
use ringer_model::verdict::VerdictWord;
use serde_json::{Number, Value, json};

use self::columns::{Column, Kind, Table};
use super::Runs;
use super::queueing::RunResults;
use crate::Caller;
use crate::library::simulations::name_of;

/// Run with its results, as an export is written from it.
struct Export {
    name: String,
    run: RunResults,
    /// Name of the Digital Human and number of the repetition, from 1, for each result.
    callers: Vec<(String, i64)>,
}

impl Runs {
    /// Returns the run in a form.
    ///
    /// # Errors
    /// [`Error::Refused`] for turns as JUnit, whose test cases are results.
    pub async fn export_run(
        &self,
        caller: &Caller,
        run_id: i64,
        format: ExportFormat,
        rows: ExportRows,
    ) -> Result<Vec<u8>> {
        if format == ExportFormat::Junit && rows != ExportRows::Results {
            return Err(Error::Refused("rows must be results for the format junit".to_owned()));
        }
        let run = self.run_results(caller, run_id).await?;
        match (format, rows) {
            (ExportFormat::Json, ExportRows::Results) => {
                let RunResults { simulation_run, simulation_results, .. } = run;
                let whole = json!({ "simulation_run": simulation_run, "simulation_results": simulation_results });
                return Ok(whole.to_string().into_bytes());
            }
            (ExportFormat::Jsonl, ExportRows::Results) => return columns::lines(&run.simulation_results),
            _ => {}
        }
        let mut db = self.store.org(&caller.organization).read().await?;
        let results = db.results_of_run(run_id).await?;
        let mut names = BTreeMap::new();
        let mut callers = Vec::with_capacity(results.len());
        for row in &results {
            let ResultDoc { body, repetition, .. } = &row.doc;
            let name: Option<String> = match body.digital_human_id {
                None => None,
                Some(id) => match names.entry(id) {
                    Entry::Occupied(known) => Option::clone(known.get()),
                    Entry::Vacant(entry) => {
                        let human = db.find::<DigitalHumanSpec>(id).await?;
                        entry.insert(human.and_then(|row| row.doc.name)).clone()
                    }
                },
            };
            callers.push((name.unwrap_or_default(), repetition + 1));
        }
        if rows == ExportRows::Turns {
            let table = turns::table(&mut db, caller, run_id, &results, &callers).await?;
            return write_table(&table, format, &json!(run.simulation_run));
        }
        let simulation_id = run.simulation_results.first().map(|result| result.body.simulation_id);
        let simulation = match simulation_id {
            Some(id) => db.find::<SimulationSpec>(id).await?,
            None => None,
        };
        let export = Export { name: simulation.as_ref().map(name_of).unwrap_or_default(), run, callers };
        match format {
            ExportFormat::Junit => export.junit().map(String::into_bytes).map_err(Error::internal),
            format => write_table(&export.table(), format, &Value::Null),
        }
    }
}

/// Returns a table in a form. The run stands before its turns in JSON.
fn write_table(table: &Table, format: ExportFormat, run: &Value) -> Result<Vec<u8>> {
    match format {
        ExportFormat::Csv => table.csv().map_err(Error::internal),
        ExportFormat::Json => Ok(json!({ "simulation_run": run, "turns": table.objects() }).to_string().into_bytes()),
        ExportFormat::Jsonl => columns::lines(&table.objects()),
        ExportFormat::Parquet => parquet_file::write(table).map_err(Error::internal),
        ExportFormat::Junit => Err(Error::internal("a table is no report of tests")),
    }
}

/// Names of the columns that every table of results begins with.
const HEAD: [(&str, Kind); 8] = [
    ("id", Kind::Integer),
    ("digital_human_id", Kind::Integer),
    ("digital_human_name", Kind::Text),
    ("status", Kind::Text),
    ("outcome", Kind::Text),
    ("duration", Kind::Integer),
    ("error_code", Kind::Text),
    ("goal_success", Kind::Truth),
];

impl Export {
    fn results(&self) -> impl Iterator<Item = (&ResultRecord, &(String, i64))> {
        self.run.simulation_results.iter().zip(&self.callers)
    }

    /// Returns a row for each result, with its metrics as columns.
    fn table(&self) -> Table {
        let mut measured: Vec<&str> = Vec::new();
        let mut judged: Vec<&str> = Vec::new();
        for (result, _) in self.results() {
            add_new(&mut measured, result.body.metrics.iter().map(|metric| metric.name.as_str()));
            let customs = result.body.evaluations.iter().flat_map(|evaluation| &evaluation.custom_metrics);
            add_new(&mut judged, customs.map(|metric| metric.name.as_str()));
        }
        // Values that people set stand beside, in runs that have some.
        let is_reviewed = self.results().any(|(result, _)| evaluation(result).human_edited);
        let reviews = if is_reviewed { &REVIEWED[..] } else { &[] };
        let mut columns: Vec<Column> = HEAD.iter().map(|(name, kind)| Column::of(name, *kind)).collect();
        let own = measured.iter().chain(&judged).map(|name| (*name, Kind::Any));
        for (name, kind) in own.chain(reviews.iter().copied()).chain(VERDICT.map(|name| (name, Kind::Text))) {
            let name = free_name(name, &columns);
            columns.push(Column { name, kind });
        }
        let rows = self.results().map(|(result, (name, _))| row(result, name, [&measured, &judged], is_reviewed));
        Table { columns, rows: rows.collect() }
    }

    fn junit(&self) -> io::Result<String> {
        let count = |is: &dyn Fn(&Verdict) -> bool| self.results().filter(|(result, _)| is(&verdict(result))).count();
        let seconds: i64 = self.results().filter_map(|(result, _)| result.body.duration).sum();
        let mut xml = Writer::new(Vec::new());
        xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
        text(&mut xml, "\n")?;
        xml.create_element("testsuite")
            .with_attribute(("name", &*representable(&self.name)))
            .with_attribute(("tests", &*self.callers.len().to_string()))
            .with_attribute(("failures", &*count(&|verdict| matches!(verdict, Verdict::Failed(_))).to_string()))
            .with_attribute(("errors", &*count(&|verdict| matches!(verdict, Verdict::Broken(_))).to_string()))
            .with_attribute(("skipped", &*count(&|verdict| matches!(verdict, Verdict::Skipped(_))).to_string()))
            .with_attribute(("time", &*seconds.to_string()))
            .write_inner_content(|xml| {
                text(xml, "\n")?;
                self.results().try_for_each(|(result, caller)| self.case(xml, result, caller))
            })?;
        text(&mut xml, "\n")?;
        String::from_utf8(xml.into_inner()).map_err(io::Error::other)
    }

    fn case(&self, xml: &mut Xml, result: &ResultRecord, (caller, repetition): &(String, i64)) -> io::Result<()> {
        text(xml, "  ")?;
        xml.create_element("testcase")
            .with_attribute(("classname", &*representable(&self.name)))
            .with_attribute(("name", &*representable(&format!("{caller} {repetition}"))))
            .with_attribute(("time", &*result.body.duration.unwrap_or(0).to_string()))
            .write_inner_content(|xml| {
                write_properties(xml, result)?;
                let (kind, why) = match verdict(result) {
                    Verdict::Passed => return Ok(()),
                    Verdict::Failed(why) => ("failure", why),
                    Verdict::Broken(why) => ("error", why),
                    Verdict::Skipped(why) => ("skipped", why),
                };
                xml.create_element(kind).with_attribute(("message", &*representable(&why))).write_empty().map(|_| ())
            })?;
        text(xml, "\n")
    }
}

/// Returns the cells of a result: the first columns, what was measured and judged, what people set, the verdict.
fn row(result: &ResultRecord, name: &str, [measured, judged]: [&[&str]; 2], is_reviewed: bool) -> Vec<Value> {
    let (body, evaluation) = (&result.body, evaluation(result));
    let mut cells = vec![
        json!(result.id),
        json!(body.digital_human_id),
        json!(name),
        json!(body.status),
        json!(body.outcome),
        json!(body.duration),
        json!(body.error_code),
        json!(evaluation.goal()),
    ];
    let value = |name: &&str| body.metrics.iter().find(|metric| metric.name == **name);
    cells.extend(measured.iter().map(|name| value(name).map_or(Value::Null, |metric| metric.value.clone())));
    let value = |name: &&str| evaluation.custom_metrics.iter().find(|metric| metric.name == **name);
    cells.extend(judged.iter().map(|name| value(name).map_or(Value::Null, judged_value)));
    if is_reviewed {
        cells.extend([
            json!(evaluation.goal_success),
            json!(evaluation.human_goal_success),
            json!(evaluation.human_goal_reasoning),
            json!(evaluation.reviewer),
            json!(evaluation.last_edited_at),
        ]);
    }
    let result_verdict = body.verdict.as_ref();
    cells.extend([
        json!(body.word()),
        json!(result_verdict.and_then(|result_verdict| result_verdict.reason.as_deref())),
    ]);
    cells
}

/// Writer of XML into memory.
type Xml = Writer<Vec<u8>>;

/// Writes blanks between elements.
fn text(xml: &mut Xml, blanks: &str) -> io::Result<()> {
    xml.write_event(Event::Text(BytesText::new(blanks)))
}

/// Names of the columns of a run that people have reviewed.
const REVIEWED: [(&str, Kind); 5] = [
    ("judged_goal_success", Kind::Truth),
    ("human_goal_success", Kind::Truth),
    ("human_goal_reasoning", Kind::Text),
    ("reviewer", Kind::Text),
    ("last_edited_at", Kind::Text),
];

/// Names of the columns of the verdict.
const VERDICT: [&str; 2] = ["verdict", "verdict_reason"];

/// Writes the word of the verdict and the values of people as properties of a test case; nothing where there are none.
fn write_properties(xml: &mut Xml, result: &ResultRecord) -> io::Result<()> {
    let mut all: Vec<(String, String)> = Vec::new();
    all.extend(result.body.word().map(|word| ("verdict".to_owned(), word.as_str().to_owned())));
    all.extend(review_values(&evaluation(result)));
    if all.is_empty() {
        return Ok(());
    }
    xml.create_element("properties").write_inner_content(|xml| {
        all.iter().try_for_each(|(name, value)| {
            let property = xml.create_element("property").with_attribute(("name", &*representable(name)));
            property.with_attribute(("value", &*representable(value))).write_empty().map(|_| ())
        })
    })?;
    Ok(())
}

/// Returns the values that people have set, by name.
fn review_values(evaluation: &Evaluation) -> Vec<(String, String)> {
    if !evaluation.human_edited {
        return Vec::new();
    }
    let word = |value: Option<bool>| value.map(|value| value.to_string());
    let customs = evaluation.custom_metrics.iter();
    let customs = customs.map(|metric| (format!("human {}", metric.name), metric.human_response_value.clone()));
    let own = [
        ("judged_goal_success", word(evaluation.goal_success)),
        ("human_goal_success", word(evaluation.human_goal_success)),
        ("human_goal_reasoning", evaluation.human_goal_reasoning.clone()),
        ("reviewer", evaluation.reviewer.clone()),
    ];
    let all = own.into_iter().map(|(name, value)| (name.to_owned(), value)).chain(customs);
    all.filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Verdict on a result for a build server.
enum Verdict {
    Passed,
    Failed(String),
    Broken(String),
    Skipped(String),
}

fn verdict(result: &ResultRecord) -> Verdict {
    let body = &result.body;
    let result_verdict = body.verdict.as_ref();
    let why = || {
        let code = body.error_code.as_ref().map(ErrorCode::as_str);
        let reason = result_verdict
            .and_then(|result_verdict| result_verdict.reason.as_deref())
            .or(body.error_message.as_deref());
        code.into_iter().chain(reason).collect::<Vec<&str>>().join(": ")
    };
    let failure = || match result_verdict.filter(|result_verdict| result_verdict.word == VerdictWord::Failed) {
        Some(_) => why(),
        None => {
            let evaluation = evaluation(result);
            let reasoning = evaluation.human_goal_reasoning.or(evaluation.goal_reasoning);
            reasoning.filter(|_| body.error_code.is_none()).unwrap_or_default()
        }
    };
    match (body.outcome, body.status) {
        (Some(Outcome::Passed), _) => Verdict::Passed,
        (Some(Outcome::Failed), ResultStatus::NoConnection | ResultStatus::NoAnswer | ResultStatus::SystemError) => {
            Verdict::Broken(why())
        }
        (Some(Outcome::Failed), _) if body.error_code.is_some() => {
            match result_verdict.map(|result_verdict| result_verdict.word) {
                Some(VerdictWord::Failed) | None => Verdict::Failed(why()),
                Some(_) => Verdict::Broken(why()),
            }
        }
        (Some(Outcome::Failed), _) => Verdict::Failed(failure()),
        (Some(Outcome::Cancelled), _) => Verdict::Skipped("cancelled".to_owned()),
        (Some(Outcome::NotEvaluated), _) => {
            let reason = result_verdict
                .and_then(|result_verdict| result_verdict.reason.as_ref())
                .map(|reason| format!(": {reason}"));
            Verdict::Skipped(format!("not evaluated{}", reason.unwrap_or_default()))
        }
        (Some(Outcome::Unknown(_)), _) => Verdict::Skipped("its outcome is not known to this version".to_owned()),
        (None, _) => Verdict::Skipped("not finished".to_owned()),
    }
}

fn evaluation(result: &ResultRecord) -> Evaluation {
    result.body.evaluations.first().cloned().unwrap_or_default()
}

/// Returns the value of a metric: a number where it is one.
fn judged_value(metric: &CustomResult) -> Value {
    let is_number = matches!(metric.response_type.as_str(), "int" | "float" | "quantitative");
    let value = metric.human_response_value.as_ref().unwrap_or(&metric.response_value);
    let number = is_number.then(|| serde_json::from_str::<Number>(value).ok()).flatten();
    number.map_or_else(|| json!(value), Value::Number)
}

fn add_new<'a>(known: &mut Vec<&'a str>, names: impl Iterator<Item = &'a str>) {
    for name in names {
        if !known.contains(&name) {
            known.push(name);
        }
    }
}

/// Returns a name of a column that no other column has: `metric.` stands before one that is taken.
fn free_name(name: &str, taken: &[Column]) -> String {
    let mut free = name.to_owned();
    while taken.iter().any(|column| column.name == free) {
        free.insert_str(0, "metric.");
    }
    free
}

/// Returns a text without the characters that XML cannot carry at all (XML 1.0, section 2.2).
fn representable(text: &str) -> String {
    let is_held =
        |c: char| !matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}');
    text.chars().filter(|c| is_held(*c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cell as it stands in a table.
    fn cell_text(value: Value) -> String {
        let columns = vec![Column::of("a", Kind::Text), Column::of("b", Kind::Any)];
        let table = Table { columns, rows: vec![vec![json!("first"), value]] };
        let row = String::from_utf8(table.csv().expect("memory takes every byte")).expect("text");
        let cells = row.strip_prefix("a,b\r\nfirst,").and_then(|row| row.strip_suffix("\r\n"));
        cells.expect("a row of two cells").to_owned()
    }

    /// The text as it stands in an attribute.
    fn attribute(text: &str) -> String {
        let mut xml = Writer::new(Vec::new());
        let element = xml.create_element("a").with_attribute(("b", &*representable(text)));
        element.write_empty().expect("memory takes every byte");
        let element = String::from_utf8(xml.into_inner()).expect("text");
        element.strip_prefix("<a b=\"").and_then(|rest| rest.strip_suffix("\"/>")).expect("an attribute").to_owned()
    }

    #[test]
    fn cells_and_attributes_carry_any_text() {
        for (text, expect) in [("a", "a"), ("a,b", "\"a,b\""), ("say \"x\"", "\"say \"\"x\"\"\""), ("a\nb", "\"a\nb\"")]
        {
            assert_eq!(cell_text(text.into()), expect);
        }
        assert_eq!(
            (cell_text(Value::Null), cell_text(json!(1.5)), cell_text(json!({"a": 1}))),
            (String::new(), "1.5".into(), "\"{\"\"a\"\":1}\"".into())
        );
        for (value, expect) in [
            (json!("=1+1"), "'=1+1"),
            (json!("+41 44 668 18 00"), "'+41 44 668 18 00"),
            (json!("-5"), "'-5"),
            (json!("@SUM(A1)"), "'@SUM(A1)"),
            (json!("\tx"), "'\tx"),
            (json!("\rx"), "\"'\rx\""),
            (json!("\nx"), "\"'\nx\""),
            (json!("=HYPERLINK(\"a\",\"b\")"), "\"'=HYPERLINK(\"\"a\"\",\"\"b\"\")\""),
            (json!("a=1"), "a=1"),
            (json!(-1.5), "-1.5"),
            (json!(-3), "-3"),
        ] {
            assert_eq!(cell_text(value.clone()), expect, "{value}");
        }
        for (kind, value, expect) in [
            ("float", "-1.5", "-1.5"),
            ("int", "-3", "-3"),
            ("quantitative", "-2", "-2"),
            ("float", "", ""),
            ("qualitative", "-1.5", "'-1.5"),
            ("enum", "=A1", "'=A1"),
        ] {
            let (response_type, response_value) = (kind.to_owned(), value.to_owned());
            let metric = CustomResult { response_type, response_value, ..CustomResult::default() };
            assert_eq!(cell_text(judged_value(&metric)), expect, "{kind} {value}");
        }
        let forbidden: String = (0..0x20).map(char::from).filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
        assert_eq!(attribute(&format!("{forbidden}\u{fffe}\u{ffff}a\u{7f}")), "a\u{7f}");
        assert_eq!(attribute("a<b>&\"c\"\n\u{1}d"), "a&lt;b&gt;&amp;&quot;c&quot;&#10;d");
    }
}
