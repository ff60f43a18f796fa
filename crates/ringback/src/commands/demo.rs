//! `ringback demo`: a tour of Ringback in one minute, each step checked.

mod circle;
mod stage;
mod steps;

use std::time::Instant;

use clap::Args;
use serde::Serialize;

use crate::connection::interruptible;
use crate::failure::Failure;
use crate::screen::Screen;
use stage::Stage;

/// `ringback demo`
#[derive(Debug, Args)]
#[command(
    after_help = "It needs nothing and leaves nothing behind: the daemon runs in this process, on free ports, \
                  in a\ntemporary directory. The command fails if a step does not do what it says."
)]
pub struct DemoArgs {
    /// Print one JSON object per step
    #[arg(long)]
    pub json: bool,
}

/// One step, done and checked.
#[derive(Debug, Serialize)]
pub(crate) struct Step {
    /// Its heading.
    title: &'static str,
    /// The command that does the same.
    command: &'static str,
    /// Why it matters.
    why: &'static str,
    /// What happened, line by line.
    happened: Vec<String>,
}

pub(crate) async fn run(args: &DemoArgs) -> Result<(), Failure> {
    let screen = Screen::new(args.json);
    let started = Instant::now();
    let stage = Box::pin(Stage::open()).await?;
    if !screen.is_json() {
        let listening = stage.listening();
        screen.text(format_args!(
            "Ringback is one daemon between agents and tools: it knows where each tool is, who may call \
             it\nand how long a call may take, and it never loses a call silently.\n\nA daemon is now \
             listening at {}, with its data in {}.\n",
            listening.hoot,
            listening.data_dir.display()
        ))?;
    }
    let shown = Box::pin(interruptible(show(screen, &stage))).await;
    stage.close().await?;
    shown?;
    if !screen.is_json() {
        let seconds = started.elapsed().as_secs_f32();
        screen.text(format_args!(
            "All steps were checked, in {seconds:.1} s; nothing is left behind. Next: `ringback serve`."
        ))?;
    }
    Ok(())
}

async fn show(screen: Screen, stage: &Stage) -> Result<(), Failure> {
    let mut number = 0;
    let mut tell = |step: Step| {
        number += 1;
        screen.item(&step, |step| told(screen, number, step))
    };
    tell(Box::pin(circle::circle(stage)).await?)?;
    tell(steps::call(stage).await?)?;
    let (job, job_id) = steps::job(stage).await?;
    tell(job)?;
    tell(steps::stream(stage).await?)?;
    tell(steps::events(stage, job_id).await?)?;
    let (content, hash) = steps::content(stage).await?;
    tell(content)?;
    tell(steps::artifact(stage, hash).await?)?;
    tell(steps::refusal(stage).await?)
}

fn told(screen: Screen, number: usize, step: &Step) -> String {
    let mut text = format!("{number}. {}", screen.bold(step.title));
    text.push_str(&format!("\n   $ {}", step.command));
    for line in &step.happened {
        text.push_str(&format!("\n   {line}"));
    }
    text.push_str(&format!("\n   {}\n", step.why));
    text
}
