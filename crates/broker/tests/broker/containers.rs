//! Containers of projects, through the broker's entry point: common tests for every backend, and
//! those of a single one.

mod commands;
mod images;
mod lives;
mod place;
mod rights;

/// The same tests on every backend.
macro_rules! on_each_backend {
    ($($(#[$doc:meta])* $name:ident)+) => {
        mod on_bubblewrap {
            $($(#[$doc])* #[tokio::test] async fn $name() {
                super::$name(crate::containers::place::Place::bubblewrap().await).await;
            })+
        }

        mod on_docker {
            $($(#[$doc])* #[tokio::test] async fn $name() {
                if let Some(place) = crate::containers::place::Place::docker().await {
                    super::$name(place).await;
                }
            })+
        }
    };
}
use on_each_backend;
