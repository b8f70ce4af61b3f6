variable "n" {
  default = 0

  validation {
    condition     = var.n > 0
    error_message = "n must be positive"
  }
}

job "web" {
  group "server" {
    task "http" {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
    }
  }
}
