# An example job of Kafila: a small web server.
#
#   kafila job validate example.nomad.hcl    check this file
#   kafila job plan example.nomad.hcl        show what running it would change
#   kafila job run example.nomad.hcl         start or update it
#   kafila job status example                show its state
#   kafila job stop example                  stop it

job "example" {
  # "service" runs until it is stopped, "batch" to completion, "system" once on each node.
  type = "service"

  # Nodes of these datacenters may run the job; "*" stands for any text.
  datacenters = ["*"]

  # Jobs with a higher priority, up to 100, are scheduled first.
  priority = 50

  # Only nodes that meet every constraint run the job.
  constraint {
    attribute = "${attr.kernel.name}"
    value     = "linux"
  }

  # Rolling update: one allocation at a time. Each has to stay healthy for ten seconds.
  update {
    max_parallel     = 1
    min_healthy_time = "10s"
    healthy_deadline = "3m"

    # A deployment that fails brings the last stable version back.
    auto_revert = true
  }

  # A group is placed on one node as a unit: its tasks share ports and files.
  group "web" {
    # Number of allocations.
    count = 1

    network {
      # A free port of the node, chosen by the scheduler. The task reads it from NOMAD_PORT_http.
      port "http" {}
    }

    # A failed task starts again on the same node, twice within half an hour.
    restart {
      attempts = 2
      interval = "30m"
      delay    = "15s"
      mode     = "fail"
    }

    # Then its allocation moves to another node.
    reschedule {
      delay          = "30s"
      delay_function = "exponential"
      max_delay      = "1h"
      unlimited      = true
    }

    # Files in alloc/data: they stay when the allocation is replaced on the same node.
    ephemeral_disk {
      size   = 300
      sticky = true
    }

    task "server" {
      # raw_exec starts a program of the node. With Docker on the node:
      #
      #   driver = "docker"
      #   config {
      #     image = "busybox:1"
      #     ports = ["http"]
      #   }
      driver = "raw_exec"

      config {
        command = "/usr/bin/python3"
        args    = ["-u", "-m", "http.server", "--bind", "${NOMAD_IP_http}", "${NOMAD_PORT_http}"]
      }

      # Variables of the task's environment.
      env {
        GREETING = "hello"
      }

      # Time between the kill signal and SIGKILL.
      kill_timeout = "10s"

      # cpu in MHz, memory in MiB. The scheduler fills nodes with them.
      resources {
        cpu    = 100
        memory = 64
      }
    }
  }
}
