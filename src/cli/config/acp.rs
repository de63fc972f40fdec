//! Settings of the front end for editors: those of each conversation are made when it is opened.

use super::chat::{check_default, library, of_person};
use super::engine::{ProviderChoice, engine};
use super::engines::configured_effort;
use super::profile::{self, ProfileValues};
use super::resume;
use super::store::store;
use crate::acp::{CommandFile, Effort, Model, Opened, Opening, Services, model_name};
use crate::cli::prompts::{self, Listed, expand};
use crate::cli::{AcpArgs, EngineName, SessionArgs};
use crate::conversation::transcript::Preamble;
use crate::engine::{CallSettings, Engine, EngineRef};
use crate::host::HostSettings;
use crate::protocol::command::{Extension, ModelChoice};
use crate::session::approval::ApprovalMode;
use crate::store::stored_choices;
use crate::support::files::WorkFolder;
use crate::support::terminal::escape_control;
use anyhow::{Result, ensure};
use clap::ValueEnum;
use serde_json::{Map, Value};
use std::sync::Arc;

/// The extensions that this front end turns on.
const EXTENSIONS: [Extension; 10] = [
    Extension::Approvals,
    Extension::Attachments,
    Extension::Compaction,
    Extension::Heartbeats,
    Extension::Store,
    Extension::SwitchModel,
    Extension::TargetedCancel,
    Extension::ToolProgress,
    Extension::ToolServers,
    Extension::Usage,
];

/// The option of the effort, which a person chooses for each session.
const EFFORT: &str = "reasoning_effort";

/// Command files of which the person is told one by one why they can't be used.
const UNUSABLE_TOLD_MAX: usize = 5;

/// What the front end needs. Reads nothing.
///
/// # Errors
/// If an option can't be used.
pub(crate) fn services(args: AcpArgs) -> Result<Services> {
    let AcpArgs { session } = args;
    let line_bytes_max = usize::try_from(session.max_request_bytes)?;
    let library = library(&session);
    Ok(Services {
        opener: Arc::new(move |opening| opened(session.clone(), opening)),
        prompts: Arc::new(|folder, line| expand(line, &WorkFolder::at(folder.to_owned()))),
        library,
        line_bytes_max,
    })
}

fn opened(mut session: SessionArgs, opening: Opening) -> Result<Opened> {
    let Opening { session: id, goes_on, folder, servers } = opening;
    let shown = folder.display();
    let why = if folder.exists() { "it is no folder" } else { "there is none" };
    ensure!(folder.is_dir(), "the folder {shown} can't be used: {why}; open another one");
    let folder = WorkFolder::at(folder);
    session.belong_to(&folder);
    session.tools.of_client = servers;
    session.session_id = Some(id.as_str().to_owned());
    session.store.resume = goes_on;
    let mut not_stored = None;
    if goes_on {
        session.system = None;
        session.append_system.clear();
        // What was chosen for the session wins over what the editor's configuration begins others with.
        session.provider.typed.clear();
        session.calls.typed.retain(|id| id != EFFORT);
    } else {
        not_stored = check_default(&mut session.store);
    }
    // Also on standard error, as not every client shows notices.
    if let Some(not_stored) = &not_stored {
        tracing::warn!("{not_stored}");
    }
    let approval = session.tools.approval.take_if(|_| goes_on);
    // Not by the beginning of its id, as for people: after a deletion another one may begin so.
    let (places, named) = store(&session)?;
    resume::go_on(&mut session, places.as_ref(), named.as_ref())?;
    session.tools.approval = session.tools.approval.or(approval);
    let may_be_default = profile::may_be_default(&session.provider) && !session.provider.has_stored;
    profile::choose_default(&mut session.provider)?;
    let left_out = profile::left_out(&session.provider, may_be_default);
    let places = places.filter(|_| goes_on).map(|it| it.places).unwrap_or_default();
    let chosen = places.iter().find_map(|place| stored_choices(place, &id)?.model);
    let settings = of_person("acp", &session, Preamble::default(), false, EXTENSIONS.to_vec())?;
    let mut host = settings.host;
    // The front end decides in its place, as the person can choose another mode at any time.
    let approval = std::mem::replace(&mut host.rules.tools.approval.mode, ApprovalMode::Ask);
    let (commands, unusable) = commands(&folder);
    let notices = settings.notices.into_iter().map(str::to_owned).chain(not_stored);
    let notices = notices.chain(left_out.into_iter().chain(unusable).map(|it| escape_control(&it)));
    Ok(Opened {
        models: models(&session, &host),
        effort: chosen.map(|it| chosen_effort(&it.settings)).unwrap_or_default(),
        approval,
        commands,
        notices: notices.collect(),
        host,
    })
}

/// The effort among the settings that were chosen for a session.
fn chosen_effort(settings: &Map<String, Value>) -> Effort {
    let found = settings.iter().find(|(name, _)| CallSettings::is_same_name(name, EFFORT));
    match found {
        Some((_, effort)) => Effort::Chosen(effort.as_str().map(str::to_owned)),
        None => Effort::Configured,
    }
}

/// The models that can be chosen: that of the conversation, those of profiles, and those of the providers that
/// have a key.
fn models(session: &SessionArgs, host: &HostSettings) -> Vec<Model> {
    let initial = host.engines.initial();
    let own = profile::name(&session.provider);
    let effort = host.engines.facts_of(&EngineRef::Initial).settings.reasoning_effort.clone();
    let mut models = vec![of_initial(initial, own, effort)];
    if let Ok(profiles) = profile::read(&session.provider.registries) {
        for name in profiles.names().into_iter().filter(|name| Some(*name) != own) {
            let values = profiles.resolve(name).ok().and_then(|it| ProfileValues::of(&it).ok());
            models.extend(values.and_then(|values| of_profile(session, name, &values, initial)));
        }
    }
    for name in EngineName::value_variants().iter().filter(|it| **it != EngineName::Echo) {
        let choice = ProviderChoice::named(&session.provider, *name);
        let engine = engine(&choice, &session.engines, &mut Vec::new()).ok();
        let usable = engine.filter(|it| it.fault().is_none() && it.name() != initial.name());
        models.extend(usable.map(|engine| {
            let effort = configured_effort(session, &CallSettings::default(), engine.name());
            of_engine(&*engine, effort)
        }));
    }
    models
}

fn of_initial(initial: &dyn Engine, profile: Option<&str>, effort: Option<String>) -> Model {
    let model = of_engine(initial, effort);
    let name = match profile {
        Some(profile) => format!("{profile}: {}", model.name),
        None => model.name,
    };
    Model { name, ..model }
}

fn of_engine(engine: &dyn Engine, effort: Option<String>) -> Model {
    let (engine, model) = (engine.name().to_owned(), engine.model().to_owned());
    let name = model_name(&engine, &model);
    let choice =
        ModelChoice { engine: engine.clone(), model: model.clone(), ..ModelChoice::default() };
    Model { id: format!("{engine}/{model}"), name, choice, engine, model, effort }
}

/// The model of a profile that can answer.
fn of_profile(
    session: &SessionArgs,
    name: &str,
    values: &ProfileValues,
    initial: &dyn Engine,
) -> Option<Model> {
    let (engine, model) = if values.has_provider() {
        let choice = ProviderChoice::other(&session.provider, values).ok()?;
        let engine = engine(&choice, &session.engines, &mut Vec::new()).ok()?;
        if engine.fault().is_some() {
            return None;
        }
        (engine.name().to_owned(), engine.model().to_owned())
    } else {
        let model = values.model.clone().unwrap_or_else(|| initial.model().to_owned());
        (initial.name().to_owned(), model)
    };
    Some(Model {
        id: format!("profile:{name}"),
        name: format!("{name}: {}", model_name(&engine, &model)),
        choice: ModelChoice { profile: name.to_owned(), ..ModelChoice::default() },
        effort: configured_effort(session, &values.settings, &engine),
        engine,
        model,
    })
}

/// The command files that can be used in the folder, and what the person is told of the others.
fn commands(folder: &WorkFolder) -> (Vec<CommandFile>, Vec<String>) {
    let (mut usable, mut unusable) = (Vec::new(), Vec::new());
    for Listed { name, about, .. } in prompts::list(folder) {
        match about {
            Ok(about) if !name.contains(char::is_control) => {
                usable.push(CommandFile { takes: takes(&name, folder), about, name });
            }
            Ok(_) => {}
            Err(why) => {
                let why = format!("/{name} can't be used: {why}");
                tracing::warn!("{}", escape_control(&why));
                unusable.push(why);
            }
        }
    }
    let others = unusable.len().saturating_sub(UNUSABLE_TOLD_MAX);
    unusable.truncate(UNUSABLE_TOLD_MAX);
    if others > 0 {
        unusable
            .push(format!("{others} more command files can't be used: `duologue run` lists them"));
    }
    (usable, unusable)
}

/// The flags and arguments of a command file, for the person who types it.
fn takes(name: &str, folder: &WorkFolder) -> String {
    let file = prompts::find(name, folder).ok().flatten();
    file.map(|file| file.takes()).unwrap_or_default()
}
