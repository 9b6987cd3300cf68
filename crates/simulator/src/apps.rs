//! The applications of a run.

use crate::app::App;
use crate::flow::Flow;
use crate::page::Load;
use crate::pep::Pep;
use crate::squid::Squid;

/// An application of a run.
pub(crate) enum Application {
    Flow(Box<Flow>),
    Page(Box<Load>),
    Squid(Box<Squid>),
    Pep(Box<Pep>),
}

impl Application {
    /// The flow, if it is one.
    pub fn flow(&self) -> Option<&Flow> {
        if let Application::Flow(flow) = self { Some(flow) } else { None }
    }

    /// The page visit, if it is one.
    pub fn load(&self) -> Option<&Load> {
        if let Application::Page(load) = self { Some(load) } else { None }
    }

    /// The PEP, if it is one.
    pub fn pep(&self) -> Option<&Pep> {
        if let Application::Pep(pep) = self { Some(pep) } else { None }
    }

    /// False for background traffic and proxies.
    pub fn is_waited_for(&self) -> bool {
        match self {
            Application::Flow(flow) => !flow.is_background(),
            Application::Page(_) => true,
            Application::Squid(_) | Application::Pep(_) => false,
        }
    }

    /// The application as the engine's interface.
    pub fn as_app(&mut self) -> &mut dyn App {
        match self {
            Application::Flow(flow) => flow.as_mut(),
            Application::Page(load) => load.as_mut(),
            Application::Squid(squid) => squid.as_mut(),
            Application::Pep(pep) => pep.as_mut(),
        }
    }
}
