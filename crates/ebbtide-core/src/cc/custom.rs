//! Controls from outside this crate: factories with a name and text settings of their own.

use super::{Algorithm, DynControl, Settings};
use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::sync::Arc;
use core::fmt;

/// A factory of controls that this crate does not know. An endpoint builds one control for each
/// scope.
///
/// A control without settings of its own does not need a type for its factory; see
/// [`Custom::from_fn`].
///
/// # Examples
///
/// ```
/// use ebbtide_core::cc::{
///     ControlConfig, CongestionControl, Context, Custom, Metrics, Registry, Sample, Slot, Transmission,
/// };
/// use ebbtide_core::time::Micros;
///
/// #[derive(Debug)]
/// struct Constant;
///
/// impl CongestionControl for Constant {
///     fn on_transmit(&mut self, _: &Transmission, _: &mut Slot, _: &mut Context<'_>) -> Micros {
///         Micros::from_millis(3_000)
///     }
///     fn on_feedback(&mut self, _: &Slot, _: &Sample, _: &mut Context<'_>) {}
///     fn metrics(&self) -> Metrics {
///         Metrics::default()
///     }
/// }
///
/// let constant = Custom::from_fn("constant", || Box::new(Constant));
/// let config = ControlConfig::custom(constant.clone());
/// assert_eq!(config.to_string(), "constant");
///
/// // By name, beside the built-in controls:
/// let registry = Registry::new([constant])?;
/// assert_eq!(registry.parse("constant:nstart=4")?.settings.nstart, Some(4));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub trait ControlFactory: Send + Sync {
    /// The name, as used on a command line. It must differ from the name of every [`Algorithm`]
    /// and must not contain `:`, `+`, `,` or spaces. See [`Registry::new`](super::Registry::new).
    fn name(&self) -> &'static str;

    /// Builds a control without any knowledge, for a new scope.
    fn build(&self) -> Box<dyn DynControl>;

    /// The keys of the settings that [`ControlFactory::with`] accepts.
    fn keys(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the same factory with one of its own settings changed.
    ///
    /// # Errors
    ///
    /// [`SettingError::Key`] if the factory has no setting with this key; the settings that all
    /// controls share are then tried. [`SettingError::Value`] if the value is not valid for the
    /// setting.
    fn with(&self, key: &str, value: &str) -> Result<Custom, SettingError> {
        let _ = (key, value);
        Err(SettingError::Key)
    }

    /// Writes the factory's own settings as `:KEY=VALUE`, without those that have their default
    /// values. Two factories with the same name and the same text count as the same control.
    ///
    /// # Errors
    ///
    /// Returns only the errors of the formatter.
    fn write_settings(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let _ = f;
        Ok(())
    }

    /// The shared settings before any of them is changed by text.
    fn settings(&self) -> Settings {
        Algorithm::Default.settings()
    }

    /// Text that distinguishes versions of the control whose name and settings are the same, such as
    /// a hash of its code; empty by default. The testbed does not reuse results of another version.
    fn version(&self) -> &str {
        ""
    }
}

/// The reason why a factory rejected a setting.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum SettingError {
    /// The factory has no setting with this key.
    Key,
    /// The value is outside the range of its key.
    Value {
        /// A description of the accepted values, such as `a whole number from 1 to 9`.
        expected: &'static str,
    },
}

/// A shared [`ControlFactory`]; clones are cheap.
#[derive(Clone)]
pub struct Custom(Arc<dyn ControlFactory>);

impl Custom {
    /// Wraps a factory.
    pub fn new(factory: impl ControlFactory + 'static) -> Self {
        Self(Arc::new(factory))
    }

    /// A control without settings of its own, built by a closure.
    pub fn from_fn(
        name: &'static str,
        build: impl Fn() -> Box<dyn DynControl> + Send + Sync + 'static,
    ) -> Self {
        Self::new(FromFn { name, build })
    }

    /// The factory.
    #[must_use]
    pub fn factory(&self) -> &dyn ControlFactory {
        &*self.0
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.0.name()
    }
}

impl fmt::Display for Custom {
    /// The name and the control's own settings.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        self.0.write_settings(f)
    }
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.version() {
            "" => write!(f, "Custom({self})"),
            version => write!(f, "Custom({self}, version {version})"),
        }
    }
}

impl PartialEq for Custom {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || self.name() == other.name()
                && self.0.version() == other.0.version()
                && self.to_string() == other.to_string()
    }
}

impl Eq for Custom {}

struct FromFn<F> {
    name: &'static str,
    build: F,
}

impl<F: Fn() -> Box<dyn DynControl> + Send + Sync> ControlFactory for FromFn<F> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn build(&self) -> Box<dyn DynControl> {
        (self.build)()
    }
}
