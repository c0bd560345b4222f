//! A lab's virtual machine with every value settled. Knows nothing of the programs that make one.

/// One virtual machine: what a lab describes under one treatment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Version below `/boot`, or path of an image; the newest full kernel with modules when `None`.
    pub kernel: Option<String>,
    /// Processors, and how they hang together: `sockets * cores * threads` is their number.
    pub cpus: u32,
    /// Packages.
    pub sockets: u32,
    /// Cores of a package.
    pub cores: u32,
    /// Threads of a core.
    pub threads: u32,
    /// NUMA nodes, over which processors and memory are dealt out evenly.
    pub nodes: u32,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Further options of the kernel command line, one word each.
    pub boot: Vec<String>,
    /// Model of the processor, in QEMU's words; chosen by the shape of the machine when `None`.
    pub cpu_model: Option<String>,
    /// Network adapters in the order written.
    pub nics: Vec<Nic>,
    /// Disks in the order written.
    pub disks: Vec<Disk>,
    /// Whether each adapter has a partner on a wire of its own, in the network namespace `far`.
    pub link: bool,
}

/// Adapters of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nic {
    /// What is emulated.
    pub model: NicModel,
    /// How many.
    pub count: u32,
    /// Queue pairs; the model's own number when `None`.
    pub queues: Option<u32>,
}

/// Models of network adapters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NicModel {
    /// Intel 82540EM: one IO-APIC interrupt.
    E1000,
    /// Intel 82574L: MSI-X.
    E1000e,
    /// Intel 82576.
    Igb,
    /// virtio-net.
    Virtio,
}

/// Disks of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// What is emulated.
    pub model: DiskModel,
    /// How many.
    pub count: u32,
    /// Size of each, bytes.
    pub size_bytes: u64,
    /// Queues of the controller; the model's own number when `None`.
    pub queues: Option<u32>,
    /// Where the guest mounts it, with a file system made anew at each boot.
    pub mount: Option<String>,
}

/// Models of disk controllers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskModel {
    /// AHCI (SATA).
    Ahci,
    /// LSI `MegaRAID` SAS.
    Megasas,
    /// `NVMe`.
    Nvme,
    /// virtio-scsi.
    Scsi,
    /// virtio-blk.
    Virtio,
}

/// The network namespace that holds the far ends of linked adapters.
pub const FAR_NAMESPACE: &str = "far";

/// Address of the near end of wire `pair`, counted from 1; its network has 24 bits.
pub fn near_address(pair: u32) -> String {
    format!("10.77.{pair}.1")
}

/// Address of the far end of wire `pair`, counted from 1, in [`FAR_NAMESPACE`].
pub fn far_address(pair: u32) -> String {
    format!("10.77.{pair}.2")
}

impl Machine {
    /// Adapters asked for, near ends only, one model for each.
    pub fn adapters(&self) -> Vec<&Nic> {
        self.nics.iter().flat_map(|nic| std::iter::repeat_n(nic, nic.count as usize)).collect()
    }

    /// Drives, one for each, with the place of their `disk` clause among the clauses.
    pub fn drives(&self) -> Vec<(usize, &Disk)> {
        let clauses = self.disks.iter().enumerate();
        clauses.flat_map(|(clause, disk)| std::iter::repeat_n((clause, disk), disk.count as usize)).collect()
    }
}
