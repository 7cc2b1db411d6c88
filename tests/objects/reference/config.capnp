using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "main", worker = .worker),
    (name = "disk", disk = (path = "disk", writable = true)),
  ],
  sockets = [(name = "http", http = (), service = "main")],
);

const worker :Workerd.Worker = (
  modules = [(name = "worker", esModule = embed "worker.js")],
  compatibilityDate = "2025-06-01",
  durableObjectNamespaces = [(className = "Script", uniqueKey = "scripts", enableSql = true)],
  durableObjectStorage = (localDisk = "disk"),
  bindings = [(name = "SCRIPTS", durableObjectNamespace = "Script")],
);
