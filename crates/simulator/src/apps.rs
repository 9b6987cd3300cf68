//! The applications of a run.

use crate::app::App;
use crate::flow::Flow;
use crate::page::Load;

/// An application of a run.
pub(crate) enum Application {
    Flow(Box<Flow>),
    Page(Box<Load>),
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

    /// False for background traffic.
    pub fn is_waited_for(&self) -> bool {
        self.flow().is_none_or(|flow| !flow.is_background())
    }

    /// The application as the engine's interface.
    pub fn as_app(&mut self) -> &mut dyn App {
        match self {
            Application::Flow(flow) => flow.as_mut(),
            Application::Page(load) => load.as_mut(),
        }
    }
}
