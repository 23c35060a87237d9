//! Which file of settings wins: an organisation's, then what one person sets for a project, then a project's for all, then what
//! a person sets for all projects. Shell variables are no layer; each wins over the keys that give way to it. And which
//! sessions a file reaches: the client reads a person's file for a project at the root of the git repository, a project's only
//! where a session begins.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::base::error::Result;
use crate::base::id::{Id, IdSet};
use crate::base::key_path::KeyPath;
use crate::base::model_id::normalise;
use crate::base::visible::Shown as _;
use crate::frames::input::Input;
use crate::logs::path::directory;
use crate::logs::timeline::requests::{Timeline, UsedModel};
use crate::settings::claude::file::{ClaudeFile, name_of};
use crate::settings::claude::levers::{Lever, LeverKind, LeverPlace, Levers, SettingsScope};
use crate::settings::entries::{JournalEntry, SettingsReach};

/// Where the files are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaudePlaces {
    /// The user's directory of Claude Code: `CLAUDE_CONFIG_DIR`, else `~/.claude`.
    pub home: Option<PathBuf>,
    /// The project: the current directory.
    pub project: Option<PathBuf>,
    /// What the organisation sets.
    pub managed: Option<PathBuf>,
    /// The variables of the shell that are set, and not to nothing.
    pub variables: BTreeMap<String, String>,
}

impl ClaudePlaces {
    /// The file of a scope; none without a home, or outside of any directory.
    pub fn file(&self, scope: SettingsScope) -> Option<PathBuf> {
        match scope {
            SettingsScope::User => self.home.as_ref().map(|home| home.join("settings.json")),
            SettingsScope::Project => {
                self.project.as_ref().map(|project| project.join(".claude").join("settings.json"))
            }
            SettingsScope::Local => {
                self.project.as_ref().map(|project| root_of(project).join(".claude").join("settings.local.json"))
            }
            SettingsScope::Managed => self.managed.clone(),
        }
    }

    /// The scope of whoever asks for one: in the user's home the file of the project is that of all projects.
    pub fn scope(&self, asked: SettingsScope) -> SettingsScope {
        let real = |scope| self.file(scope).map(|path| fs::canonicalize(&path).unwrap_or(path));
        let is_users = asked == SettingsScope::Project && real(asked) == real(SettingsScope::User);
        if is_users { SettingsScope::User } else { asked }
    }
}

/// The root of the git repository around a directory, where Claude Code looks for what one person sets; else the directory
/// itself.
pub fn root_of(directory: &Path) -> &Path {
    directory.ancestors().find(|place| place.join(".git").exists()).unwrap_or(directory)
}

/// What keeps a lever from having any effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// Behind the name of the lever: "set by …", "overridden by …".
    pub why: String,
    /// Whether whoever owns the file that is changed can take it away.
    pub is_own: bool,
}

/// The file that is changed, with those that win over it and those that it wins over.
#[derive(Debug, Clone)]
pub struct SettingsLayers {
    /// The file that is changed.
    pub file: ClaudeFile,
    above: Vec<ClaudeFile>,
    below: Vec<ClaudeFile>,
    /// The one among them that only an organisation changes.
    managed: Option<PathBuf>,
    variables: BTreeMap<String, String>,
    /// The models whose requests it is about; none where nobody said which, so that any may be.
    models: Option<BTreeSet<UsedModel>>,
}

/// What a lever is set to, and where.
struct Set<'l> {
    /// Its name, with the model where it is set for one.
    name: String,
    value: Value,
    /// None where it is a variable of the shell.
    file: Option<&'l ClaudeFile>,
}

impl SettingsLayers {
    /// Reads the file of a scope (`path`, if it lies elsewhere), those that win over it for everybody whom it concerns, and
    /// those whose settings hold where it says nothing. An error if one of them is there and cannot be read.
    pub fn load(places: &ClaudePlaces, scope: SettingsScope, path: &Path) -> Result<Self> {
        use SettingsScope::{Local, Managed, Project, User};
        // What one project sets says nothing about a file for all projects.
        let (above, below): (&[SettingsScope], &[SettingsScope]) = match scope {
            User | Managed => (&[Managed], &[]),
            Local => (&[Managed], &[Project, User]),
            Project => (&[Managed, Local], &[User]),
        };
        // Of a project what holds for most of its sessions, which begin at the root of the repository.
        let root =
            ClaudePlaces { project: places.project.as_deref().map(root_of).map(Path::to_owned), ..places.clone() };
        let places = if scope == Local { &root } else { places };
        let load = |scopes: &[SettingsScope]| {
            let paths = scopes.iter().filter_map(|scope| places.file(*scope).filter(|place| place != path));
            paths.map(|path| ClaudeFile::load(&path)).collect::<Result<Vec<_>>>()
        };
        let (above, below) = (load(above)?, load(below)?);
        let (file, managed, variables) = (ClaudeFile::load(path)?, places.managed.clone(), places.variables.clone());
        Ok(Self { file, above, below, managed, variables, models: None })
    }

    /// The files of the project alone: what they set wins over a file for all projects. None outside of any directory. A file
    /// that cannot be read says nothing, as for the client.
    pub fn of_project(places: &ClaudePlaces) -> Option<Self> {
        let local = places.file(SettingsScope::Local)?;
        let file = ClaudeFile::load(&local).unwrap_or_else(|_| ClaudeFile::missing(&local));
        let is_apart = places.scope(SettingsScope::Project) == SettingsScope::Project;
        let project = || ClaudeFile::load(&places.file(SettingsScope::Project)?).ok();
        let below = is_apart.then(project).flatten().into_iter().collect();
        Some(Self { file, above: Vec::new(), below, managed: None, variables: BTreeMap::new(), models: None })
    }

    /// These of the user, with the files of a project, which win over the one for all projects. None where it has none.
    pub fn in_project(&self, places: &ClaudePlaces) -> Option<Self> {
        let own = Self::of_project(places).filter(|own| own.files().any(|file| file.existed))?;
        let mut all = self.clone();
        all.above.extend([own.file].into_iter().chain(own.below));
        Some(all)
    }

    /// These of the user, below the files of a project, whose own file is the one that is changed. None in the user's home.
    pub fn below_project(&self, places: &ClaudePlaces) -> Option<Self> {
        let own = Self::of_project(places)?;
        let project = own.below.into_iter().next()?;
        let mut all = self.clone();
        all.below = vec![std::mem::replace(&mut all.file, project)];
        all.above.push(own.file);
        Some(all)
    }

    /// The same, about the requests of some models: what is set for another one concerns none of them.
    #[must_use]
    pub fn about(self, models: BTreeSet<UsedModel>) -> Self {
        Self { models: Some(models), ..self }
    }

    /// The same, about the requests of the same models as `other`.
    #[must_use]
    pub fn about_those_of(self, other: &Self) -> Self {
        Self { models: other.models.clone(), ..self }
    }

    /// Whether some of the requests are of a model, however it is spelled: a date and a window are of the same one.
    fn has_model(&self, name: &str) -> bool {
        let name = normalise(name);
        self.models.as_ref().is_none_or(|models| models.iter().any(|model| normalise(&model.name) == name))
    }

    /// Whether some of the requests that a lever is about are of a family of models.
    fn has_family(&self, family: &str, lever: &Lever) -> bool {
        let is_met = |model: &UsedModel| lever.is_about(model.is_main) && model.name.contains(family);
        self.models.as_ref().is_none_or(|models| models.iter().any(is_met))
    }

    /// What stands in the file for a key.
    pub fn value(&self, key: &KeyPath) -> Result<Option<Value>> {
        self.file.get(key)
    }

    /// Whether the file sets a lever to something that the client takes.
    pub fn holds(&self, lever: &Lever) -> Result<bool> {
        let value = lever.key(None).map(|key| self.value(&key)).transpose()?.flatten();
        Ok(value.is_some_and(|value| lever.taken(&value).is_some()))
    }

    /// What keeps a lever from having any effect here; none if nothing does.
    pub fn overridden(&self, lever: &Lever, key: &KeyPath, levers: &Levers) -> Result<Option<Obstacle>> {
        for file in &self.above {
            // Lists of files add up.
            let decides = |value: &Value| {
                lever.kind != LeverKind::List && (lever.taken(value).is_some() || is_unset(lever, value))
            };
            if file.get(key)?.is_some_and(|value| decides(&value)) {
                let why = format!("set by {} and cannot be overridden here", file.path.shown());
                return Ok(Some(self.obstacle(why, Some(file))));
            }
        }
        for other in lever.gives_way_to.iter().filter_map(|name| levers.named(name)) {
            if let Some(obstacle) = self.wins(other)? {
                return Ok(Some(obstacle));
            }
        }
        self.switched_off(lever, lever, levers)
    }

    /// That a stronger lever is set, to something that the client takes; none if it is not.
    fn wins(&self, other: &Lever) -> Result<Option<Obstacle>> {
        let Some(Set { name, file, .. }) = self.set(other)?.filter(|set| other.taken(&set.value).is_some()) else {
            return Ok(None);
        };
        let over = if other.is_for_one_model() { "over it for that model" } else { "over it" };
        let why = match file {
            Some(file) => format!("set by {name} of {}, which wins {over}", file.path.shown()),
            None => format!("set by the variable {name} of the shell{}", taken_away(&name)),
        };
        Ok(Some(self.obstacle(why, file)))
    }

    /// What a lever is set to; none if it is not set, or a variable that a file takes away.
    fn set(&self, lever: &Lever) -> Result<Option<Set<'_>>> {
        Ok(self.said(lever)?.filter(|set| !is_unset(lever, &set.value)))
    }

    /// What the strongest file that says anything about a lever says, else the shell.
    fn said(&self, lever: &Lever) -> Result<Option<Set<'_>>> {
        for file in self.files() {
            let mut sets = Vec::new();
            for (name, key) in self.keys_in(file, lever)? {
                sets.extend(file.get(&key)?.map(|value| Set { name, value, file: Some(file) }));
            }
            // Of several models the first counts for which the client takes the value. What it does not take of settings says
            // nothing; a variable hides the one below all the same.
            match sets.iter().position(|set| lever.taken(&set.value).is_some()) {
                Some(taken) => return Ok(Some(sets.swap_remove(taken))),
                None if lever.place == LeverPlace::Variable && !sets.is_empty() => return Ok(sets.pop()),
                None => {}
            }
        }
        let text = self.variables.get(&lever.name).filter(|_| lever.place == LeverPlace::Variable);
        let of_shell = |text: &String| Set { name: lever.name.clone(), value: Value::from(text.as_str()), file: None };
        Ok(text.map(of_shell))
    }

    /// The files that say what holds, strongest first.
    fn files(&self) -> impl Iterator<Item = &ClaudeFile> {
        self.above.iter().chain([&self.file]).chain(&self.below)
    }

    /// What a lever is set to, in whatever file, or in the shell.
    pub fn resolved(&self, lever: &Lever) -> Result<Option<Value>> {
        Ok(self.set(lever)?.map(|set| set.value))
    }

    /// Whether a lever is set by the shell, and by no file.
    pub fn is_of_shell(&self, lever: &Lever) -> Result<bool> {
        Ok(self.set(lever)?.is_some_and(|set| set.file.is_none()))
    }

    /// What a variable that is no lever is set to, in whatever file, or in the shell; none if it is empty.
    pub fn variable(&self, name: &str) -> Result<Option<String>> {
        let key = KeyPath::from(["env", name]);
        for file in self.files() {
            if let Some(value) = file.get(&key)? {
                return Ok(value.as_str().filter(|text| !text.is_empty()).map(str::to_owned));
            }
        }
        Ok(self.variables.get(name).cloned())
    }

    /// Whether a list holds such an entry in any of the files: lists of files add up.
    pub fn lists(&self, key: &KeyPath, is_meant: impl Fn(&Value) -> bool) -> Result<bool> {
        for file in self.files() {
            let listed = file.get(key)?;
            if listed.as_ref().and_then(Value::as_array).is_some_and(|listed| listed.iter().any(&is_meant)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The list that leaves a value of a lever out, so that the client takes another one; none if none does. Lists of files add
    /// up, but for that of an organisation.
    pub fn left_out(&self, lever: &Lever, value: &Value, levers: &Levers) -> Result<Option<Obstacle>> {
        let Some(list) = lever.listed_in.as_ref().and_then(|name| levers.named(name)) else { return Ok(None) };
        let (Some(key), Some(value)) = (list.key(None), value.as_str()) else { return Ok(None) };
        // A name without a version stands for models of that family.
        let is_meant = |entry: &Value| entry.as_str().is_some_and(|entry| entry.contains(value));
        let why = |file: &ClaudeFile| format!("not among the models of {} in {}", list.name, file.path.shown());
        let mut without = None;
        for file in self.files() {
            let Some(listed) = file.get(&key)? else { continue };
            let Some(listed) = listed.as_array() else { continue };
            if listed.iter().any(is_meant) {
                return Ok(None);
            }
            // The strongest comes first.
            if self.managed.as_ref() == Some(&file.path) {
                return Ok(Some(self.obstacle(why(file), Some(file))));
            }
            without = without.or(Some(file));
        }
        Ok(without.map(|file| self.obstacle(why(file), Some(file))))
    }

    /// The file that sets a lever; none where no file does.
    pub fn file_of(&self, lever: &Lever) -> Result<Option<&ClaudeFile>> {
        Ok(self.set(lever)?.and_then(|set| set.file))
    }

    /// Something that wins, in a file or in the shell: whoever changes the file may change all but what is managed.
    fn obstacle(&self, why: String, file: Option<&ClaudeFile>) -> Obstacle {
        Obstacle { why, is_own: file.is_none_or(|file| self.managed.as_ref() != Some(&file.path)) }
    }

    /// Of a lever and those that decide the same, the one that holds here, with its value: the strongest that is set to
    /// something that the client takes, if nothing switches it off. None also where one is set for a single model.
    pub fn in_force<'v>(&self, lever: &'v Lever, levers: &'v Levers) -> Result<Option<(&'v Lever, Value)>> {
        for one in levers.deciding(lever) {
            if let Some(value) = self.set(one)?.and_then(|set| one.taken(&set.value)) {
                let holds = !one.is_for_one_model() && self.switched_off(one, lever, levers)?.is_none();
                return Ok(holds.then_some((one, value)));
            }
        }
        Ok(None)
    }

    /// Whether these files of a project say what becomes of a lever beside the `user`'s: set it or one that decides the same, for
    /// all models or for one, or switch it off. A variable of the user's wins over a setting of the project.
    pub fn decide(&self, lever: &Lever, levers: &Levers, user: &Self) -> Result<bool> {
        let is_set = |set: &Set<'_>, one: &Lever| !is_unset(one, &set.value) && one.taken(&set.value).is_some();
        for one in levers.deciding(lever) {
            match self.said(one)? {
                Some(said) if is_set(&said, one) => return Ok(true),
                None if !one.is_for_one_model() && user.set(one)?.is_some_and(|set| is_set(&set, one)) => break,
                _ => {}
            }
        }
        Ok(self.switched_off(lever, lever, levers)?.is_some())
    }

    /// What switches off all that a lever sets for the requests that another one is about; none if nothing does.
    fn switched_off(&self, lever: &Lever, about: &Lever, levers: &Levers) -> Result<Option<Obstacle>> {
        let is_met = |switch: &&Lever| switch.family.as_ref().is_none_or(|family| self.has_family(family, about));
        for switch in lever.off_by.iter().filter_map(|name| levers.named(name)).filter(is_met) {
            let Some(Set { value, file, .. }) = self.set(switch)? else { continue };
            // A variable switches off if the client takes it, whatever it says but its default; a setting has to be false.
            let is_off = match switch.place {
                LeverPlace::Setting => value == Value::Bool(false),
                _ => switch.taken(&value).is_some_and(|taken| switch.default.as_ref() != Some(&taken)),
            };
            if is_off {
                let name = &switch.name;
                let why = match file {
                    Some(file) => format!("overridden by {name} in {}", file.path.shown()),
                    None => format!("overridden by the variable {name} of the shell{}", taken_away(name)),
                };
                return Ok(Some(self.obstacle(why, file)));
            }
        }
        Ok(None)
    }

    /// The names and keys under which a lever may stand in a file: one for each model in use that the file names, if it is set
    /// by model.
    fn keys_in(&self, file: &ClaudeFile, lever: &Lever) -> Result<Vec<(String, KeyPath)>> {
        let Some((models, _)) = lever.name.split_once(".*").filter(|_| lever.is_for_one_model()) else {
            return Ok(lever.key(None).into_iter().map(|key| (lever.name.clone(), key)).collect());
        };
        let models = file.get(&KeyPath::from([models]))?;
        let named = models.as_ref().and_then(Value::as_object).into_iter().flat_map(|models| models.keys());
        let named = named.filter(|model| self.has_model(model));
        Ok(named.filter_map(|model| Some((lever.name.replace('*', model), lever.key(Some(model))?))).collect())
    }
}

/// How a file takes a variable of the shell away.
pub fn taken_away(variable: &str) -> String {
    format!("; \"env\": {{ \"{variable}\": \"\" }} in the file takes it away")
}

/// Whether a value says that a lever is not set: an empty variable, and a switch that is a variable and says no.
fn is_unset(lever: &Lever, value: &Value) -> bool {
    let is_switch = lever.kind == LeverKind::Boolean;
    lever.place == LeverPlace::Variable
        && match value {
            Value::String(text) => text.is_empty() || is_switch && says_no(text),
            Value::Number(number) => is_switch && says_no(&number.to_string()),
            Value::Bool(value) => is_switch && !value,
            _ => false,
        }
}

/// Whether the text of a variable that is a switch leaves it off.
pub fn says_no(text: &str) -> bool {
    ["0", "false", "no", "off"].contains(&text.trim().to_ascii_lowercase().as_str())
}

impl SettingsReach {
    /// That of a scope where the current directory is.
    pub fn of_scope(scope: SettingsScope, places: &ClaudePlaces) -> Self {
        match (scope, &places.project) {
            (SettingsScope::Project, Some(project)) => Self::Directory(project_id(project)),
            (SettingsScope::Local, Some(project)) => Self::Repository(project_id(root_of(project))),
            _ => Self::All,
        }
    }

    /// That of what an entry of the journal is about.
    pub fn of_entry(entry: &JournalEntry, places: &ClaudePlaces) -> Self {
        let is_users = places.file(SettingsScope::User).is_some_and(|path| name_of(&path) == entry.config);
        entry.reach.filter(|_| !is_users).unwrap_or(Self::All)
    }

    /// The projects that settings reach; none: all.
    pub fn projects(self, timeline: &Timeline, input: &Input) -> Option<BTreeSet<Id>> {
        match self {
            Self::All => None,
            Self::Directory(project) => Some(BTreeSet::from([project])),
            Self::Repository(root) => {
                let known: IdSet<Id> = timeline.sessions.iter().map(|session| session.project).collect();
                let texts = input.texts(known, IdSet::default());
                let within = texts.into_iter().filter(|(_, path)| project_id(root_of(Path::new(path))) == root);
                Some(within.map(|(project, _)| project).chain([root]).collect())
            }
        }
    }
}

/// Where a project of the logs is on this disk. What a log says may be of another machine; a path to one is never followed.
pub fn place_of_project(path: &str) -> Option<PathBuf> {
    Some(PathBuf::from(path))
        .filter(|path| path.is_absolute() && !path.as_os_str().as_encoded_bytes().starts_with(b"\\\\"))
}

/// The name of a project in logs.
pub fn project_id(path: &Path) -> Id {
    Id::pseudonym(&directory(path.as_os_str().as_encoded_bytes()))
}
