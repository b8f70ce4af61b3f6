# A job whose new versions run as one canary before the rest is updated.
#
#   kafila job run canary.hcl                     release 1: no canary, nothing runs yet
#   kafila job run -var release=2 canary.hcl      one canary of release 2 beside release 1; in another
#                                                 terminal:
#   kafila job status canary                      the state of the canary
#   kafila job promote canary                     the rest is updated
#   kafila deployment fail ID                     or the canary is stopped, and the job reverts
#   kafila job history -p canary                  the versions and their diffs
#   kafila job revert canary 0                    back to version 0, with a canary as well

variable "release" {
  type        = number
  default     = 1
  description = "Which release to run."
}

job "canary" {
  group "app" {
    count = 3

    update {
      # Number of canaries beside the old allocations until they are promoted. With
      # auto_promote = true, they are promoted as soon as they are healthy.
      canary       = 1
      auto_promote = false

      # When the deployment fails, the job reverts to its newest stable version.
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
