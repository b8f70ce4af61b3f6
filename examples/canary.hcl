# A new version is tried out on one canary before the rest follows.
#
#   kafila job run canary.hcl                     release 1: there is nothing to be careful with yet
#   kafila job run -var release=2 canary.hcl      one of release 2 beside all of release 1; in another
#                                                 terminal:
#   kafila job status canary                      how the canary is doing
#   kafila job promote canary                     the rest follows
#   kafila deployment fail ID                     or does not: the job goes back by itself
#   kafila job history -p canary                  which versions there were
#   kafila job revert canary 0                    and back to one of them, with a canary as well

variable "release" {
  type        = number
  default     = 1
  description = "Which release to run."
}

job "canary" {
  group "app" {
    count = 3

    update {
      # How many of the new version run beside the old ones until somebody promotes them. With
      # auto_promote = true, the rest follows by itself once they are healthy.
      canary       = 1
      auto_promote = false

      # When the deployment fails, the newest version that proved stable is run again.
      auto_revert = true

      # After the promotion, two at a time.
      max_parallel     = 2
      min_healthy_time = "1s"
      healthy_deadline = "30s"

      # Canaries and the rest have to be healthy in that time, or the deployment fails. To wait for
      # a promotion is no failure.
      progress_deadline = "2m"
    }

    # A task that fails is started again once, on its machine; nowhere else.
    restart {
      attempts = 1
      interval = "1m"
      delay    = "1s"
      mode     = "fail"
    }
    reschedule {
      attempts  = 0
      unlimited = false
    }

    task "app" {
      driver = "raw_exec"

      env {
        RELEASE = var.release
      }

      config {
        command = "/bin/sh"
        args    = ["-c", "echo \"release $RELEASE\"; exec sleep infinity"]
      }

      resources {
        cpu    = 20
        memory = 16
      }
    }
  }
}
