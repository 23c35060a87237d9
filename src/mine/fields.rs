//! Which fields of JSON results the model took up later, by tool: shares with their intervals, tokens of what it never did, and
//! the groups that follow from it; as tables and listings. Only what is written again can be seen: a field that informs without
//! being repeated (a text, a status, a yes or no) is *not followed* and not judged.

use std::cmp::Ordering;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::base::id::{Id, IdMap};
use crate::base::listing::{Columns, Listing, counts};
use crate::base::names::{Names, Sym};
use crate::base::stats::Share;
use crate::logs::history::History;
use crate::logs::timeline::requests::BlockKind;
use crate::logs::timeline::rows::{FieldRow, FileTimeline};
use crate::logs::trace::Status;
use crate::report::numbers::{counted, known, percent, thousands};
use crate::report::share::bounds;
use crate::report::table::{Table, TableBuilder};

/// How fields of all whose keys are no names are called.
pub const OTHER_NAMES: &str = "other names";

/// The vocabulary in which tokens are counted: `o200k_base`.
const VOCABULARY: usize = 0;

/// The fields of the answers of many files, by call; copies of an answer are one.
#[derive(Default)]
pub struct CallFields {
    names: Names,
    /// By call and by what names the text, if all of it was held: other makers' models give ids again.
    answers: IdMap<(Id, Id), JsonAnswer>,
    /// Whether any copy of an answer was looked at: of a log that is gone only its requests may be known.
    is_read: IdMap<(Id, Id), bool>,
}

#[derive(Default)]
struct JsonAnswer {
    tokens: u64,
    fields: BTreeMap<Sym, AnswerField>,
}

#[derive(Clone, Copy, Default)]
struct AnswerField {
    tokens: u64,
    values: u32,
    used: u32,
    how: u8,
}

impl CallFields {
    /// Those of all files.
    pub fn of(files: impl Iterator<Item = FileTimeline>) -> Self {
        let mut fields = Self::default();
        files.for_each(|file| fields.add(&file));
        fields
    }

    /// Adds the rows of a file.
    fn add(&mut self, file: &FileTimeline) {
        for block in file.rows.blocks.iter().filter(|block| block.kind == BlockKind::ToolResult) {
            let is_read = block.chars == 0 || block.tokens[VOCABULARY] > 0;
            *self.is_read.entry((block.call, block.named)).or_default() |= is_read;
        }
        let symbols = self.names.absorb(&file.names);
        let mut told: IdMap<(Id, Id), JsonAnswer> = IdMap::default();
        for row in &file.rows.fields {
            let block = &file.rows.blocks[row.block as usize];
            if !block.call.is_some() {
                continue;
            }
            let answer = told.entry((block.call, block.named)).or_default();
            answer.tokens = answer.tokens.max(u64::from(block.tokens[VOCABULARY]));
            let field = AnswerField {
                tokens: u64::from(row.tokens[VOCABULARY]),
                values: row.values,
                used: row.used,
                how: row.how,
            };
            answer.fields.entry(symbols[row.name.0 as usize]).or_default().merge(field);
        }
        told.into_iter().for_each(|(key, answer)| match self.answers.entry(key) {
            Entry::Vacant(place) => _ = place.insert(answer),
            Entry::Occupied(known) => known.into_mut().merge(answer, &self.names),
        });
    }
}

impl JsonAnswer {
    /// Adds what a copy in another file says, which may have seen more of what came later. Without its call beside it no field has
    /// a name: then it says nothing where another copy does. Of two answers with other names the one with more of them counts.
    fn merge(&mut self, copy: Self, names: &Names) {
        let named = |answer: &Self| {
            let texts = answer.fields.keys().map(|name| names.text(*name).to_owned());
            let texts: BTreeSet<String> = texts.filter(|name| name != FieldRow::OTHER).collect();
            (texts.len(), texts)
        };
        match named(self).cmp(&named(&copy)) {
            Ordering::Less => *self = copy,
            Ordering::Equal => {
                self.tokens = self.tokens.max(copy.tokens);
                copy.fields.into_iter().for_each(|(name, field)| self.fields.entry(name).or_default().merge(field));
            }
            Ordering::Greater => {}
        }
    }
}

impl AnswerField {
    fn merge(&mut self, copy: Self) {
        self.tokens = self.tokens.max(copy.tokens);
        self.values = self.values.max(copy.values);
        self.used = self.used.max(copy.used);
        self.how |= copy.how;
    }
}

/// Fields of answers, by tool and by field.
#[derive(Serialize, Deserialize, Default, Debug, Clone)]
pub struct FieldUses {
    /// Answers that ran well, of all tools.
    pub answers: u64,
    /// Left out of these: answers of deleted logs that nobody looked at for fields.
    pub unread: u64,
    /// Sessions with a call.
    pub sessions: u64,
    /// Tools with an answer in JSON, those with the most tokens in unused fields first.
    pub tools: Vec<ToolFields>,
    /// Their fields, tool by tool in the same order.
    pub fields: Vec<FieldUse>,
}

/// The fields of one tool.
#[derive(Serialize, Deserialize, Default, Debug, Clone)]
pub struct ToolFields {
    /// Tool; of a shell with the class of the command.
    pub tool: String,
    /// Answers that are no errors.
    pub answers: u64,
    /// Of these, those in JSON with at least one field.
    pub responses: u64,
    /// Sessions with one of those.
    pub sessions: u64,
    pub fields: u64,
    /// Fields of responses (each once per response) with a value that was followed.
    pub followed: u64,
    /// Of these, with a value that the model wrote later.
    pub used: u64,
    pub tokens: u64,
    /// Of these, of fields that were used.
    pub tokens_used: u64,
    /// Of these, of fields that were followed and never used.
    pub tokens_unused: u64,
    /// Of these, of fields without a value that could be followed. The rest is brackets and signs between fields.
    pub tokens_not_followed: u64,
}

/// One field of a tool.
#[derive(Serialize, Deserialize, Default, Debug, Clone)]
pub struct FieldUse {
    /// Tool, as in [`ToolFields::tool`].
    pub tool: String,
    /// Path of keys, or [`OTHER_NAMES`].
    pub field: String,
    pub responses: u64,
    /// Sessions with one of them.
    pub sessions: u64,
    /// Responses in which a value of it was followed.
    pub followed: u64,
    pub sessions_followed: u64,
    /// Responses of which the model wrote a value later.
    pub used: u64,
    /// Of these, first into an argument of a call.
    pub in_arguments: u64,
    /// Of these, first into a file.
    pub in_edits: u64,
    /// Of these, first to the person.
    pub in_texts: u64,
    /// Tokens of its keys and values.
    pub tokens: u64,
    /// Of these, in responses in which it was followed and not used.
    pub tokens_unused: u64,
}

impl ToolFields {
    /// How many of the followed fields were used.
    pub fn share(&self) -> Share {
        Share::new(self.used, self.followed)
    }
}

/// What is being summed up of a tool.
#[derive(Default)]
struct ToolFieldSums {
    tool: ToolFields,
    sessions: BTreeSet<u32>,
    fields: BTreeMap<String, FieldSums>,
}

#[derive(Default)]
struct FieldSums {
    field: FieldUse,
    sessions: BTreeSet<u32>,
    followed: BTreeSet<u32>,
}

/// Sums up the fields of the answers of a history; `names` are those of its tools and endpoints.
pub fn uses(history: &History, names: &Names, found: &CallFields) -> FieldUses {
    let mut tools: BTreeMap<String, ToolFieldSums> = BTreeMap::new();
    let (mut answers, mut unread, mut all_sessions) = (0, 0, BTreeSet::new());
    for call in &*history.calls {
        let session = history.chains[call.chain as usize].session;
        all_sessions.insert(session);
        if call.status != Status::Ok {
            continue;
        }
        let texts = [(call.id, call.body), (call.id, Id::NONE)];
        if texts.iter().find_map(|text| found.is_read.get(text)) == Some(&false) {
            unread += 1;
            continue;
        }
        answers += 1;
        let label = label(names.text(call.tool), names.text(call.endpoint));
        let sums = tools.entry(label).or_default();
        sums.tool.answers += 1;
        if let Some(answer) = texts.iter().find_map(|text| found.answers.get(text)) {
            sums.add(answer, session, &found.names);
        }
    }
    tools.retain(|_, sums| sums.tool.responses > 0);
    let mut rows: Vec<(ToolFields, Vec<FieldUse>)> = tools.into_iter().map(|(tool, sums)| sums.rows(tool)).collect();
    rows.sort_by(|(a, _), (b, _)| b.tokens_unused.cmp(&a.tokens_unused).then_with(|| a.tool.cmp(&b.tool)));
    let mut uses = FieldUses { answers, unread, sessions: all_sessions.len() as u64, ..FieldUses::default() };
    for (tool, fields) in rows {
        uses.tools.push(tool);
        uses.fields.extend(fields);
    }
    uses
}

/// The name of a tool; that of a shell says which program answered.
fn label(tool: &str, endpoint: &str) -> String {
    let is_class = !endpoint.is_empty() && endpoint != tool && matches!(tool, "Bash" | "WebFetch");
    if is_class { format!("{tool}: {endpoint}") } else { tool.to_owned() }
}

impl ToolFieldSums {
    fn add(&mut self, answer: &JsonAnswer, session: u32, names: &Names) {
        let tool = &mut self.tool;
        tool.responses += 1;
        tool.tokens += answer.tokens;
        self.sessions.insert(session);
        for (&name, field) in &answer.fields {
            let name = names.text(name);
            let name = if name == FieldRow::OTHER { OTHER_NAMES } else { name };
            let sums = self.fields.entry(name.to_owned()).or_default();
            sums.field.add(field);
            sums.sessions.insert(session);
            match (field.values > 0, field.used > 0) {
                (false, _) => tool.tokens_not_followed += field.tokens,
                (true, false) => tool.tokens_unused += field.tokens,
                (true, true) => tool.tokens_used += field.tokens,
            }
            if field.values > 0 {
                sums.followed.insert(session);
                tool.followed += 1;
                tool.used += u64::from(field.used > 0);
            }
        }
    }

    /// The row of the tool, and those of its fields: most tokens in vain first.
    fn rows(self, tool: String) -> (ToolFields, Vec<FieldUse>) {
        let row = |(field, sums): (String, FieldSums)| FieldUse {
            tool: tool.clone(),
            field,
            sessions: sums.sessions.len() as u64,
            sessions_followed: sums.followed.len() as u64,
            ..sums.field
        };
        let mut fields: Vec<FieldUse> = self.fields.into_iter().map(row).collect();
        fields.sort_by(|a, b| b.tokens_unused.cmp(&a.tokens_unused).then_with(|| a.field.cmp(&b.field)));
        let (sessions, count) = (self.sessions.len() as u64, fields.len() as u64);
        (ToolFields { tool, sessions, fields: count, ..self.tool }, fields)
    }
}

impl FieldUse {
    /// In how many of the followed responses it was used.
    pub fn share(&self) -> Share {
        Share::new(self.used, self.followed)
    }

    fn add(&mut self, field: &AnswerField) {
        self.responses += 1;
        self.tokens += field.tokens;
        if field.values == 0 {
            return;
        }
        self.followed += 1;
        let has = |bit: u8| u64::from(field.how & bit > 0);
        self.in_arguments += has(FieldRow::IN_ARGUMENT);
        self.in_edits += has(FieldRow::IN_EDIT);
        self.in_texts += has(FieldRow::IN_TEXT);
        if field.used > 0 {
            self.used += 1;
        } else {
            self.tokens_unused += field.tokens;
        }
    }
}

/// The numbers of `rules/t2_fields.toml`.
#[derive(Deserialize, Debug, Clone)]
pub struct GroupNumbers {
    pub responses_min: u64,
    pub sessions_min: u64,
    must_have_lower_min: f64,
    debug_upper_max: f64,
}

/// What a field is worth; the names are those of the published schema.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum FieldWorth {
    /// Surely used in most responses.
    MustHave,
    NiceToHave,
    /// Surely used in next to none.
    Debug,
}

impl GroupNumbers {
    /// The group of a field; none of one that was seen too rarely or has no name.
    pub fn group(&self, field: &FieldUse) -> Option<FieldWorth> {
        let is_enough = field.followed >= self.responses_min && field.sessions_followed >= self.sessions_min;
        if !is_enough || field.field == OTHER_NAMES {
            return None;
        }
        let share = field.share();
        Some(match share {
            Share { lower, .. } if lower >= self.must_have_lower_min => FieldWorth::MustHave,
            Share { upper, .. } if upper <= self.debug_upper_max => FieldWorth::Debug,
            _ => FieldWorth::NiceToHave,
        })
    }
}

/// All columns of tools.
pub fn tools(rows: &[ToolFields]) -> Listing {
    let columns = Columns::of(rows).text("tool", |row| row.tool.clone());
    let columns = counts!(columns, answers, responses, sessions, fields, followed, used)
        .share(["used_share", "used_share_lower", "used_share_upper"], |row| row.share().known());
    counts!(columns, tokens, tokens_used, tokens_unused, tokens_not_followed).finish()
}

/// All columns of fields.
pub fn fields(rows: &[FieldUse], numbers: &GroupNumbers) -> Listing {
    let columns = Columns::of(rows).text("tool", |row| row.tool.clone()).text("field", |row| row.field.clone());
    let columns = counts!(columns, responses, sessions, followed, sessions_followed, used)
        .share(["used_share", "used_share_lower", "used_share_upper"], |row| row.share().known());
    counts!(columns, in_arguments, in_edits, in_texts, tokens, tokens_unused)
        .text("group", |row| numbers.group(row).map_or("", |worth| worth.into_str()).to_owned())
        .finish()
}

/// "12.3 % (10.1–15.0)"; a dash where nothing was followed.
fn interval(share: &Share) -> String {
    known(share.known(), |share| format!("{} ({})", percent(share.value()), bounds(share)))
}

/// Tools for people.
pub fn tools_overview(rows: &[ToolFields]) -> Table {
    TableBuilder::of(rows)
        .text("tool", |row| row.tool.clone())
        .number("JSON results", |row| format!("{} of {}", thousands(row.responses), thousands(row.answers)))
        .count("sessions", |row| row.sessions)
        .count("fields", |row| row.fields)
        .number("used (95 %)", |row| interval(&row.share()))
        .count("tokens", |row| row.tokens)
        .count("of unused fields", |row| row.tokens_unused)
        .count("not followed", |row| row.tokens_not_followed)
        .table()
}

/// Fields for people.
pub fn fields_overview(rows: &[FieldUse], numbers: &GroupNumbers) -> Table {
    TableBuilder::of(rows)
        .text("tool", |row| row.tool.clone())
        .text("field", |row| row.field.clone())
        .count("answers", |row| row.responses)
        .count("sessions", |row| row.sessions)
        .count("followed", |row| row.followed)
        .number("used (95 %)", |row| interval(&row.share()))
        .count("tokens", |row| row.tokens)
        .count("unused", |row| row.tokens_unused)
        .text("group", |row| numbers.group(row).map_or("–", |worth| worth.into_str()).to_owned())
        .table()
}

/// How many answers are JSON at all, and what became of their tokens: the lines above the tables.
pub fn summary(uses: &FieldUses) -> Vec<String> {
    let sum = |of: fn(&ToolFields) -> u64| uses.tools.iter().map(of).sum::<u64>();
    let (responses, tokens, unused) = (sum(|row| row.responses), sum(|row| row.tokens), sum(|row| row.tokens_unused));
    let share = Share::new(sum(|row| row.used), sum(|row| row.followed));
    let of_all = known((uses.answers > 0).then(|| responses as f64 / uses.answers as f64), percent);
    let first = format!(
        "{} of {} ({of_all}) are JSON, of {}: {}.",
        thousands(responses),
        counted(uses.answers, "result"),
        counted(uses.tools.len() as u64, "tool"),
        counted(tokens, "token"),
    );
    if responses == 0 {
        return vec![first];
    }
    let second = format!(
        "Counted result by result, {} had a value that can be followed, and of {} the model wrote one again later: {}. The \
         others hold {}.",
        counted(share.n, "field"),
        thousands(share.k),
        interval(&share),
        counted(unused, "token"),
    );
    vec![first, second]
}

/// What the words of the tables mean, for who asks for it.
pub fn legend(numbers: &GroupNumbers) -> Vec<String> {
    vec![
        "A field is used in a result if the model wrote one of its values later: in an argument, an edit or a text.".into(),
        "Followed are values that say where they are from (ids, paths, addresses, names with signs or mixed case, numbers of \
         three digits). Texts, single words, yes and no are not: they may be read without being repeated."
            .into(),
        "What the model or a person had written before the result is an echo and not followed.".into(),
        "Short numbers and common names may be met again by chance, so that a share is more likely too high than too low.".into(),
        format!(
            "A group is given from {} results in {} sessions on (rules/t2_fields.toml).",
            numbers.responses_min, numbers.sessions_min
        ),
    ]
}
