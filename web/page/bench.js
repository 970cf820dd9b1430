// Workers: one judges, the others compute replications. None of them waits for another one's campaign.

class Testbed {
  constructor(module) {
    this.worker = new Worker("worker.js");
    this.waiting = [];
    this.worker.onmessage = ({ data }) => this.waiting.shift()?.resolve(data);
    this.worker.onerror = (event) => this.waiting.shift()?.reject(new Error(event.message));
    this.ready = this.#post({ module });
  }

  #post(message, transfer = []) {
    return new Promise((resolve, reject) => {
      this.waiting.push({ resolve, reject });
      this.worker.postMessage(message, transfer);
    });
  }

  async ask(request, bytes) {
    await this.ready;
    return this.#post({ request, bytes }, bytes ? [bytes.buffer] : []);
  }

  get isBusy() { return this.waiting.length > 0; }

  end() { this.worker.terminate(); }
}

export class Bench {
  static async start(cores) {
    const bench = new Bench();
    const response = await fetch("ebbtide.wasm");
    if (!response.ok) throw new Error(`ebbtide.wasm: ${response.status}`);
    bench.module = await WebAssembly.compile(await response.arrayBuffer());
    bench.judge = new Testbed(bench.module);
    bench.crew = Array.from({ length: Math.max(1, Math.min(cores, 8)) }, () => new Testbed(bench.module));
    bench.turn = 0;
    return bench;
  }

  async ask(request, bytes) {
    return (await this.judge.ask(request, bytes)).answer;
  }

  async open(plan) {
    this.stop();
    this.plan = plan;
    return this.ask(plan);
  }

  /** Ends what is under way; a worker in the middle of a replication is replaced. */
  stop() {
    this.turn += 1;
    this.crew = this.crew.map((one) => {
      if (!one.isBusy) return one;
      one.end();
      return new Testbed(this.module);
    });
  }

  /** Runs the campaign that is open. `tell` gets what the judge finds, and how many replications are done of all. */
  async run(opened, tell) {
    const turn = this.turn;
    const plan = this.plan;
    const tasks = [];
    const most = Math.max(...opened.cells.map((cell) => cell.reps));
    for (let replication = 0; replication < most; replication += 1) {
      opened.cells.forEach((cell, index) => {
        if (replication < cell.reps) tasks.push({ cell: index, replication });
      });
    }
    const all = tasks.length;
    const records = new Map();
    let next = 0;
    let added = 0;
    let shown = 0;
    let adding = Promise.resolve();
    // Records are added in order: whichever worker is the first, the answer is the same.
    const settle = async (isLast) => {
      while (added < all && records.has(added)) {
        const bytes = records.get(added);
        records.delete(added);
        const answer = await this.ask({ op: "add", cell: tasks[added].cell }, bytes);
        if (answer.error) throw new Error(answer.error);
        added += 1;
        if (turn !== this.turn) return;
      }
      const round = Math.floor(added / opened.cells.length);
      const isWhole = added === all || added % opened.cells.length === 0;
      // The first verdict at once, then less and less often: each one draws the whole report.
      if (isWhole && round > shown && (added === all || round >= shown * 1.5 || isLast)) {
        shown = round;
        const found = await this.ask({ op: "show" });
        if (turn === this.turn && !found.error) tell(found, added, all);
      }
    };
    await Promise.all(this.crew.map(async (worker) => {
      const answer = (await worker.ask(plan)).answer;
      if (answer.error) throw new Error(answer.error);
      while (next < all && turn === this.turn) {
        const place = next;
        next += 1;
        const { bytes, answer: failed } = await worker.ask({ op: "compute", ...tasks[place] });
        if (turn !== this.turn) return;
        if (!bytes) throw new Error(failed.error);
        records.set(place, bytes);
        adding = adding.then(() => settle(false));
      }
    }));
    if (turn === this.turn) await adding;
  }
}
