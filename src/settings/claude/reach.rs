//! Which sessions a file of Claude Code's settings reaches: the client reads what one person sets for a project at the root of the
//! git repository, what a project sets for everybody only where a session begins.

use std::collections::BTreeSet;
use std::path::Path;

use crate::base::id::{Id, IdSet};
use crate::frames::input::Input;
use crate::logs::path::directory;
use crate::logs::timeline::requests::Timeline;
use crate::settings::claude::file::name_of;
use crate::settings::claude::layers::{ClaudePlaces, root_of};
use crate::settings::claude::levers::SettingsScope;
use crate::settings::entries::{JournalEntry, SettingsReach};

/// That of a scope where the current directory is.
pub fn of_scope(scope: SettingsScope, places: &ClaudePlaces) -> SettingsReach {
    match (scope, &places.project) {
        (SettingsScope::Project, Some(project)) => SettingsReach::Directory(project_id(project)),
        (SettingsScope::Local, Some(project)) => SettingsReach::Repository(project_id(root_of(project))),
        _ => SettingsReach::All,
    }
}

/// That of what an entry of the journal is about. Entries of earlier versions do not say it: there the place of the file does.
pub fn of_entry(entry: &JournalEntry, places: &ClaudePlaces) -> SettingsReach {
    let is_users = places.file(SettingsScope::User).is_some_and(|path| name_of(&path) == entry.config);
    let path = Path::new(&entry.config);
    let project = || path.parent().filter(|parent| parent.ends_with(".claude"))?.parent().map(project_id);
    match (is_users, entry.reach, project()) {
        (true, ..) | (false, None, None) => SettingsReach::All,
        (false, Some(reach), _) => reach,
        (false, None, Some(project)) if path.ends_with("settings.local.json") => SettingsReach::Repository(project),
        (false, None, Some(project)) => SettingsReach::Directory(project),
    }
}

/// The projects that settings reach; none: all.
pub fn projects(reach: SettingsReach, timeline: &Timeline, input: &Input) -> Option<BTreeSet<Id>> {
    match reach {
        SettingsReach::All => None,
        SettingsReach::Directory(project) => Some(BTreeSet::from([project])),
        SettingsReach::Repository(root) => {
            let known: IdSet<Id> = timeline.sessions.iter().map(|session| session.project).collect();
            let texts = input.texts(known, IdSet::default());
            let within = texts.into_iter().filter(|(_, path)| project_id(root_of(Path::new(path))) == root);
            Some(within.map(|(project, _)| project).chain([root]).collect())
        }
    }
}

/// The name of a project in logs.
pub fn project_id(path: &Path) -> Id {
    Id::pseudonym(directory(path.as_os_str().as_encoded_bytes()))
}
